#!/usr/bin/env python3
"""check_words.py SOURCE: words that have no place in the tree."""

import pathlib
import re
import sys

SKIPPED = {".git", "build", "__pycache__"}
TEXTS = {".cpp", ".hpp", ".py", ".toml", ".md", ".txt", ".cmake", ".json", ".sh", ".def", ".1", ".5", ".7", ".bash", ".fish", ""}

# Pattern, files it applies to, what is wrong. The patterns don't match their own source.
RULES = [
    (r"\bFIX[M]E\b|\bX[X]X\b", None, "unfinished"),
    (r"\bTO[D]O\b(?! when )", None, "a to-do names its condition: \"when ...\""),
    (r"/wor[k]/(main|shared)\b", None, "a path of one machine"),
    (r"^\s*throw\b", r"^src/.*\.[ch]pp$", "errors are values"),
    (r"\b(class|struct) \w+(Manager|Helper|Util)\b", r"^(src|include)/", "a name that says nothing"),
    (r"(?i)f[o]lder", r"^(?!tests/repo/check_moved[.]py$)", "the term is \"directory\""),
    (r"\b[Ww]ish(es|ed)?\b", r"^(src|include|man|docs|schema)/", "the term is \"request\""),
    (r"(?<![Tt]here )\b(is|are|was|were) no (?!longer|more|other|one\b|such|way|need|obstacle)[a-z]",
     r"^(src|include|man|docs)/|^[A-Z]+[.]md$", "\"is not a ...\" is plainer"),
    (r"[ \t]+$", r"\.(cpp|hpp|py|toml|md)$", "blanks at the end of a line"),
]


# A comment that begins like this has no verb; within a comment a line may.
VERBLESS = re.compile(r"\s*//[/!<]* Of (the|a|an)\b")


def main():
    source = pathlib.Path(sys.argv[1])
    problems, count = [], 0
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source)
        if not path.is_file() or path.suffix not in TEXTS or SKIPPED & set(name.parts):
            continue
        count += 1
        before = ""
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if VERBLESS.match(line) and not before.lstrip().startswith("//"):
                problems.append(f"{name}:{number}: a comment without a verb: {line.strip()[:80]}")
            before = line
            for pattern, files, words in RULES:
                if (files is None or re.search(files, name.as_posix())) and re.search(pattern, line):
                    problems.append(f"{name}:{number}: {words}: {line.strip()[:80]}")
    if count < 50:
        sys.exit(f"only {count} files below {source}")
    print("\n".join(problems) or f"{count} files, nothing found")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
