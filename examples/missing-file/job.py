"""Reads a table that lies beside this directory, where the policy does not let it look."""

with open("../data-analysis/temperatures.csv") as table:
    print(table.readline().strip())
