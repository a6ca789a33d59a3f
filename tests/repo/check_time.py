#!/usr/bin/env python3
"""check_time.py SOURCE: no test has an upper bound on elapsed time, from whatever clock: a busy machine breaks each. A promise
about time is shown by the order of events or by CPU time. Lower bounds may stay.

time_bounds.txt lists what may compare times all the same: `FILE FUNCTION: REASON` a line."""

import ast
import pathlib
import re
import sys

CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "clock_gettime", "clock_gettime_ns"}
WORDS = re.compile(r"(^|_)(wall_ms|elapsed|duration|duration_ms|took)$")
MEASURED_ON_PURPOSE = {"bench"}


class Scope(ast.NodeVisitor):
    """Finds the comparisons of one Python file that have a time on the side of a bound."""

    def __init__(self, text):
        self.tree = ast.parse(text)
        self.timed_functions = set()
        self.found = []  # (function, line)
        # A function that gives a time may be used above its definition, or by another such function.
        before = None
        while before != self.timed_functions:
            before = set(self.timed_functions)
            self.found = []
            self.function, self.names = "", set()
            self.visit(self.tree)

    def is_time(self, node):
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                name = getattr(part.func, "attr", getattr(part.func, "id", ""))
                owner = getattr(getattr(part.func, "value", None), "id", "")
                if name in CLOCKS or (owner, name) == ("time", "time") or name in self.timed_functions:
                    return True
            elif isinstance(part, ast.Name) and (part.id in self.names or WORDS.search(part.id)):
                return True
            elif isinstance(part, ast.Attribute) and WORDS.search(part.attr):
                return True
            elif isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) and WORDS.search(str(part.slice.value)):
                return True
        return False

    def learn(self, target):
        for part in ast.walk(target):
            if isinstance(part, ast.Name):
                self.names.add(part.id)

    def visit_FunctionDef(self, node):
        outer = self.function, self.names
        self.function, self.names = node.name, set(self.names)
        for _ in range(2):  # a loop may use what its end assigns
            found = list(self.found)
            self.generic_visit(node)
            again, self.found = self.found, found
        self.found = again
        self.function, self.names = outer

    def visit_Assign(self, node):
        self.generic_visit(node)
        pairs = [(target, node.value) for target in node.targets]
        for target, value in pairs:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs += list(zip(target.elts, value.elts))
            elif not isinstance(target, (ast.Subscript, ast.Attribute)) and self.is_time(value):
                self.learn(target)

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if isinstance(node.target, ast.Name) and self.is_time(node.value):
            self.learn(node.target)

    def visit_Return(self, node):
        self.generic_visit(node)
        if node.value and self.function and not isinstance(node.value, ast.Compare) and self.is_clock_difference(node.value):
            self.timed_functions.add(self.function)

    def is_clock_difference(self, node):
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        return any(isinstance(part, (ast.BinOp, ast.Name, ast.Subscript)) and self.is_time(part) for part in parts)

    def visit_Assert(self, node):
        test = node.test
        lower = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Gt, ast.GtE)) and not self.is_time(test.comparators[0])
        if not lower:
            self.generic_visit(node)

    def visit_Compare(self, node):
        self.generic_visit(node)
        if any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops) and any(map(self.is_time, [node.left, *node.comparators])):
            self.found.append((self.function, node.lineno))

    def visit_Call(self, node):
        self.generic_visit(node)
        name, values = getattr(node.func, "attr", ""), node.args[:2]
        if len(values) < 2:
            return
        upper = {"assertLess": values[:1], "assertLessEqual": values[:1], "assertGreater": values[1:], "assertGreaterEqual": values[1:],
                 "assertAlmostEqual": values}.get(name, [])
        if any(map(self.is_time, upper)):
            self.found.append((self.function, node.lineno))


CPP_CLOCK = re.compile(r"\b(steady_clock|system_clock|high_resolution_clock|CLOCK_MONOTONIC|CLOCK_REALTIME)\b|\bwall_ms\b|\belapsed\b")
CPP_BOUND = re.compile(r"\b(?:EXPECT|ASSERT)_(LT|LE|GT|GE|NEAR|TRUE|FALSE|THAT)\s*\((.*)", re.S)
CPP_TEST = re.compile(r"\bTEST(?:_[FP])?\((\w+),\s*(\w+)\)")
CPP_FUNCTION = re.compile(r"^[\w:<>&*\s]+?\b(\w+)\([^;]*\)\s*(?:const\s*)?$", re.S)


def first_argument(text):
    depth = 0
    for at, character in enumerate(text):
        depth += character in "([{"
        depth -= character in ")]}"
        if depth < 0 or (depth == 0 and character == ","):
            return text[:at], text[at + 1:]
    return text, ""


def in_cpp(text):
    """(function, line) for each comparison of a C++ file that has a time on the side of a bound."""
    text = re.sub(r"//[^\n]*", "", text)
    names, found, function, line = set(), [], "", 1
    parts = re.split(r"([;{}])", text)
    for statement, follows in zip(parts, parts[1:] + [""]):
        here = line + statement[: len(statement) - len(statement.lstrip())].count("\n")
        line += statement.count("\n")
        if match := CPP_TEST.search(statement):
            function, names = match[1] + "." + match[2], set()
        elif follows == "{" and (match := CPP_FUNCTION.search(statement)) and match[1] not in ("if", "for", "while", "switch"):
            function, names = match[1], set()

        def is_time(part):
            return bool(CPP_CLOCK.search(part)) or any(re.search(rf"\b{name}\b", part) for name in names)

        if match := CPP_BOUND.search(statement):
            first, rest = first_argument(match[2])
            upper = {"LT": first, "LE": first, "GT": rest, "GE": rest, "NEAR": match[2]}.get(match[1])
            if upper is not None and is_time(upper.split("<<")[0]):
                found.append((function, here))
            elif upper is None and is_time(match[2]) and re.search(r"[^<]<=?[^<]|[^->]>=?[^>]|\b(Lt|Le)\(", match[2]):
                found.append((function, here))
        elif re.match(r"\s*(while|if|for)\b", statement) and is_time(statement) and re.search(r"\s[<>]=?\s", statement):
            found.append((function, here))
        elif (match := re.search(r"\b(\w+)\s*=[^=](.*)", statement, re.S)) and is_time(match[2]):
            names.add(match[1])
    return found


PLANTED_PYTHON = '''
def took_a_while():
    begin = time.monotonic()
    return time.monotonic() - begin
def test_a(self):
    begin = time.monotonic()
    self.assertLess(time.monotonic() - begin, 5)                    #!
    self.assertTrue(1.5 < time.monotonic() - begin < 5)             #!
    self.assertGreaterEqual(time.monotonic() - begin, 1)
    self.assertLessEqual(ended.record["usage"]["wall_ms"], 8000)    #!
    self.assertGreater(5, time.perf_counter() - begin)              #!
    usage = ended.record["usage"]
    self.assertLess(usage["user_ms"], usage["wall_ms"])
    self.assertLess(took_a_while(), 3)                              #!
    first, seconds = 1, took_a_while()
    self.assertLess(seconds, 3)                                     #!
    self.assertLess(first, 3)
    assert time.time() - begin < 5                                  #!
    assert time.time() - begin > 5
    while time.monotonic() < begin + 5:                             #!
        pass
    self.assertLess(cell["duration"], 5)                            #!
    self.assertAlmostEqual(time.monotonic(), begin)                 #!
    if time.monotonic() > begin + 5:                                #!
        self.fail()
'''
PLANTED_CPP = '''
TEST(A, B) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);  //!
  const auto spent = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(spent, 5s) << "late";                           //!
  EXPECT_GE(spent, 5s);
  EXPECT_GT(5s, spent);                                     //!
  EXPECT_TRUE(spent < 5s);                                  //!
  EXPECT_LT(count, 7) << seen.usage.wall_ms;
  EXPECT_LT(seen.usage.wall_ms, 1050U);                     //!
  EXPECT_LE(seen.cpu_ms, kTimes * seen.usage.cpu);
  while (std::chrono::steady_clock::now() < begin + 1s) {   //!
  }
}
TEST(A, C) {
  EXPECT_LT(spent, 7);
}
'''


def check_itself():
    for text, find in ((PLANTED_PYTHON, lambda text: Scope(text).found), (PLANTED_CPP, in_cpp)):
        expected = [number for number, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith("!")]
        found = sorted({line for _, line in find(text)})
        assert found == expected, f"planted in lines {expected}, found in {found}"


def main():
    check_itself()
    source = pathlib.Path(sys.argv[1])
    exceptions = {}
    for line in (source / "tests/repo/time_bounds.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            place, _, reason = line.partition(": ")
            assert reason and " " in place, f"not \"FILE FUNCTION: REASON\": {line}"
            exceptions[tuple(place.split(" "))] = reason
    problems, used, count = [], set(), 0
    for path in sorted((source / "tests").rglob("*")):
        name = path.relative_to(source / "tests")
        if path.suffix not in (".py", ".cpp", ".hpp") or name.parts[0] in MEASURED_ON_PURPOSE:
            continue
        count += 1
        for function, line in Scope(path.read_text()).found if path.suffix == ".py" else in_cpp(path.read_text()):
            place = (name.as_posix(), function)
            used.add(place)
            if place not in exceptions:
                problems.append(f"tests/{name}:{line}: {function} bounds a time: a busy machine breaks it; show the order of events, or CPU time")
    problems += [f"time_bounds.txt: {' '.join(place)} has no such bound: remove the line" for place in exceptions if place not in used]
    if count < 50:
        sys.exit(f"only {count} files below {source}/tests")
    print("\n".join(problems) or f"{count} files, {len(exceptions)} exceptions")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
