#!/usr/bin/env python3
"""The driver of R contexts: values, tables, plots, conditions, ends, interrupts."""

import pathlib
import re
import shutil

import celltest
import harness
from celltest import DRIVERS, CellTest, Died, is_png

TABLE = "application/vnd.sbx.table+json"
ANY = re.compile(".*", re.DOTALL)


def matching(text):
    return re.compile(text, re.DOTALL)


# Code, text of the main result, stdout, stderr, (error's name, value, line).
CELLS = [
    ("1 + 1", "[1] 2", "", "", None),
    ("x <- 5", None, "", "", None),
    ("x", "[1] 5", "", "", None),
    ("invisible(7)", None, "", "", None),
    ("(y <- 6)", "[1] 6", "", "", None),
    ("1; 2; 'three'", '[1] "three"', "[1] 1\n[1] 2\n", "", None),
    ("cat('out\\n'); message('err')", None, "out\n", "err\n", None),
    ("print('printed')", None, '[1] "printed"\n', "", None),
    ("NULL", "NULL", "", "", None),
    ("f <- function(a, b = 2) {\n  a * b\n}", None, "", "", None),
    ("f(21)", "[1] 42", "", "", None),
    ("f", "function(a, b = 2) {\n  a * b\n}", "", "", None),
    ("c(a = 1, b = 2)", "a b \n1 2 ", "", "", None),
    ("'é中\"\\\\\\n'", '[1] "é中\\"\\\\\\n"', "", "", None),
    ("cat('é\\n')", None, "é\n", "", None),
    ("list(1, 'a')", "[[1]]\n[1] 1\n\n[[2]]\n[1] \"a\"\n", "", "", None),
    ("for (i in 1:2) i", None, "", "", None),
    ("for (i in 1:2) print(i)", None, "[1] 1\n[1] 2\n", "", None),
    ("if (TRUE) 'yes'", '[1] "yes"', "", "", None),
    ("", None, "", "", None),
    ("# a comment", None, "", "", None),
    ("factor(c('u', 'v'))", "[1] u v\nLevels: u v", "", "", None),
    ("setClass('P', representation(x = 'numeric')); setMethod('show', 'P', function(object) cat('P of', object@x, '\\n'))", None, "", "", None),
    ("new('P', x = 3)", "P of 3 ", "", "", None),
    ("structure(1, class = 'own')", matching('\\[1\\] 1\nattr.*'), "", "", None),
    ("print.own <- function(x, ...) cat('own print\\n'); structure(1, class = 'own')", "own print", "", "", None),
    ("stop('mine')", None, "", "", ("simpleError", "mine", 1)),
    ("g <- function(v) {\n  if (v > 1)\n    stop('too large: ', v)\n  v\n}", None, "", "", None),
    ("x <- 1\n\ng(2)", None, "", "", ("simpleError", "too large: 2", 3)),
    ("undefined_name", None, "", "", ("simpleError", "object 'undefined_name' not found", 1)),
    ("log(-1)", "[1] NaN", "", "Warning in log(-1) : NaNs produced\n", None),
    ("warning('careful'); 1", "[1] 1", "", "Warning: careful\n", None),
    ("as.integer('x')", "[1] NA", "", "Warning: NAs introduced by coercion\n", None),
    ("(function() warning('inside'))()", None, "", matching("Warning in \\(function\\(\\) .*\\(\\) : inside\n"), None),
    ("suppressWarnings(as.integer('x'))", "[1] NA", "", "", None),
    ("tryCatch(stop('caught'), error = function(e) conditionMessage(e), finally = cat('finally\\n'))", '[1] "caught"', "finally\n", "", None),
    ("withCallingHandlers(message('m'), message = function(m) { cat('handled\\n'); invokeRestart('muffleMessage') })", None, "handled\n", "", None),
    ("stop(structure(class = c('custom', 'error', 'condition'), list(message = 'own class', call = NULL)))", None, "", "", ("custom", "own class", 1)),
    ("try(stop('tried'), silent = TRUE); 2", "[1] 2", "", "", None),
    ("options(warn = 2); as.integer('x')", None, "", "", ("simpleError", matching(".*converted from warning.*"), 1)),
    ("options(warn = 0)", None, "", "", None),
    ("x <- (1 +", None, "", "", ("ParseError", matching("<cell .*>:2:0: unexpected end of input.*"), 1)),
    ("if", None, "", "", ("ParseError", matching(".*unexpected end of input.*"), 1)),
    ("1\nif (TRUE\n\n", None, "", "", ("ParseError", matching(".*unexpected end of input.*"), 2)),
    ("x <- 1\n'open\n", None, "", "", ("ParseError", matching(".*unexpected INCOMPLETE_STRING.*"), 2)),
    ("x <- 1\ny <- = 2", None, "", "", ("ParseError", matching(".*unexpected '='.*"), 2)),
    ("print.bad <- function(x, ...) stop('no print'); structure(1, class = 'bad')", None, "", "", ("simpleError", "no print", 1)),
    ("deep <- function(n) deep(n + 1); deep(1)", None, "", ANY, (matching("\\w*[sS]tackOverflowError|simpleError"), ANY, ANY)),
    ("system('echo child', intern = TRUE)", '[1] "child"', "", "", None),
    ("invisible(system('echo out; echo err >&2'))", None, "out\n", "err\n", None),
    ("system2('echo', 'two', stdout = TRUE)", '[1] "two"', "", "", None),
    ("readline('? ')", '[1] ""', "? \n", "", None),
    ("readLines(file('stdin'))", "character(0)", "", "", None),
    ("setwd(tempdir()); writeLines('1', 'f'); readLines('f')", '[1] "1"', "", "", None),
    ("sink('sunk'); print('hidden')", None, "", "", None),
    ("print('back')", None, '[1] "back"\n', "", None),
    ("unlist(parallel::mclapply(1:2, function(i) i * 2, mc.cores = 2))", "[1] 2 4", "", "", None),
    ("mean(c(1, NA), na.rm = TRUE)", "[1] 1", "", "", None),
    ("lm(dist ~ speed, cars)", matching("\nCall:\n.*Coefficients:.*"), "", "", None),
    ("local({ z <- 3; z })", "[1] 3", "", "", None),
    ("exists('z')", "[1] FALSE", "", "", None),
    ("ls()", matching('.*"kept".*'), "", "", None),
    ("sprintf('%s', '\\x1b[0m')", matching(".*"), "", "", None),
    ("cat(strrep('x', 1e7))", None, lambda out: len(out) == 10_000_000, "", None),
]


class R(CellTest):
    def r(self, cwd=None, **named):
        if shutil.which("Rscript", path="/usr/bin:/bin") is None:
            self.skipTest("r-base-core is not installed")
        context = self.start(["/usr/bin/Rscript", "--vanilla", str(DRIVERS / "r.R")], cwd=cwd or self.directory(), **named)
        self.assertEqual((context.ready["language"], context.ready["shell"], context.start_output), ("r", "plain", (b"", b"")))
        return context

    def test_questions_about_code_that_does_not_run(self):
        context = self.r()
        context.is_complete([
            ("", "complete"), ("1 + 1", "complete"), ("f <- function() {", "incomplete"), ("f <- function() {\n 1\n}", "complete"), ("foo(", "incomplete"), ("'abc", "incomplete"),
            ("x <- 1 +", "incomplete"), ("1 2", "invalid"), ("}", "invalid"), ("if (x)", "incomplete")])
        context.cell("hello_world <- 1; df <- data.frame(aa = 1, ab = 2); f <- function(first_arg, second) 1")
        context.completes([("hel", "hel", ["hello_world", "help"]), ("df$a", "df$a", ["df$aa", "df$ab"]), ("f(fir", "fir", ["first_arg="]), ("1 + hello_w", "hello_w", ["hello_world"]),
                           ("x <- 1\nread.c", "read.c", ["read.csv"]), ("nothing_of_this_name", "", [])])
        self.assertEqual(context.ask("nonsense", "x"), {})
        self.assertEqual(context.cell("'é'").text, '[1] "é"')

    def test_table(self):
        context = self.r()
        context.cell("kept <- 42")
        for code, main, out, err, error in CELLS:
            answer = context.cell(code)
            about = f"{code}\n{answer}"
            self.assertTrue(self.fits(main, answer.text), about)
            self.assertTrue(self.fits(out, answer.out.decode()), about)
            self.assertTrue(self.fits(err, answer.err.decode()), about)
            self.assertEqual(answer.done["ok"], error is None, about)
            if error:
                actual = answer.error
                self.assertTrue(all(self.fits(expected, actual[name]) for expected, name in zip(error, ("name", "value", "line"))), about)
                for foreign in ("withCallingHandlers", "tryCatch", "show_value", ".handleSimpleError", "expressions[["):
                    self.assertNotIn(foreign, actual["traceback"], about)
            self.assertEqual(context.cell("kept").text, "[1] 42", about)
        self.assertEqual(context.close(), 0)

    def test_traceback(self):
        context = self.r()
        context.cell("inner <- function(v) stop('deep')\nouter <- function(v) inner(v)")
        answer = context.cell("\nouter(1)")
        self.assertEqual(answer.error["traceback"], "Error in inner(v) : deep\nCalls:\n  outer(1)\n  inner(v)\n  stop(\"deep\")", answer)
        self.assertEqual(answer.error["line"], 2)

    def test_errors_at_the_top_name_no_call(self):
        context = self.r()
        for code, trace in (("nothing", "Error: object 'nothing' not found"), ("stop('mine')", "Error: mine\nCalls:\n  stop(\"mine\")"),
                            ("log('a')", "Error in log(\"a\") : non-numeric argument to mathematical function")):
            self.assertEqual(context.cell(code).error["traceback"], trace)

    def test_browser_is_no_step_through_later_cells(self):
        context = self.r()
        told = b"sbx: browser() needs a terminal, so the code goes on\n"
        for code, text, err in (("browser()", None, told), ("for (i in 1:3) browser(); 5", "[1] 5", told), ("f <- function(v) {\n  browser()\n  v\n}\nf(4)", "[1] 4", told),
                                ("browser(expr = FALSE)", None, b""), ("base::browser()", None, told), ("invisible(trace('f', browser, print = FALSE)); f(6)", "[1] 6", told),
                                ("suppressWarnings({ warning('w'); 2 })", "[1] 2", b""), ("library(splines); ls()", '[1] "f" "i"', b"")):
            answer = context.cell(code)
            self.assertEqual((answer.done["ok"], answer.text, bytes(answer.err)), (True, text, err), f"{code}\n{answer}")
            self.assertNotIn(b"debug", answer.out, answer)

    def test_data_frames(self):
        context = self.r()
        answer = context.cell("data.frame(n = c(1.5, NA), i = 1:2, t = c('a\"', NA), l = c(TRUE, NA), d = as.Date('2020-01-02') + 0:1)")
        self.assertEqual(answer.main[TABLE], {"columns": [{"name": "n", "dtype": "numeric"}, {"name": "i", "dtype": "integer"}, {"name": "t", "dtype": "character"},
                                                          {"name": "l", "dtype": "logical"}, {"name": "d", "dtype": "Date"}],
                                              "rows": [[1.5, 1, 'a"', True, "2020-01-02"], [None, 2, None, None, "2020-01-03"]], "total": 2}, answer)
        table = context.cell("mtcars").main[TABLE]
        self.assertEqual((table["columns"][0], table["rows"][0][:3], table["total"]), ({"name": "", "dtype": "character", "index": True}, ["Mazda RX4", 21, 6], 32))
        table = context.cell("data.frame(x = 1:5000)").main[TABLE]
        self.assertEqual((table["total"], len(table["rows"]), table["rows"][999]), (5000, 1000, [1000]))
        self.assertEqual(context.cell("data.frame()").main[TABLE], {"columns": [], "rows": [], "total": 0})

    def test_plots(self):
        context = self.r()
        for code, pictures in (("plot(1:3)", 1), ("hist(c(1, 2)); barplot(1:2)", 2), ("plot(1:2); lines(2:1); stop('after')", 1), ("x <- 1", 0),
                               ("pdf('own.pdf'); plot(1); invisible(dev.off())", 0), ("library(grid); grid.newpage(); grid.rect()", 1)):
            answer = context.cell(code)
            self.assertEqual([list(data) for data in answer.shown], [["image/png"]] * pictures, f"{code}\n{answer}")
            self.assertTrue(all(is_png(data["image/png"]) for data in answer.shown))

    def test_what_follows_a_plot_waits_until_its_place_is_read(self):
        r = self.r()
        r.answers_places = False
        nonce = r.begin("cat('before\\n'); plot(1); cat('after\\n')")
        answer = celltest.Answer()
        r.wait_for(answer, lambda message: message["event"] == "place")
        harness.wait_until(lambda: "pipe" in pathlib.Path(f"/proc/{r.process.pid}/wchan").read_text(), "R reads the answer")
        r.drain(answer)
        self.assertEqual(answer.out, b"before\n")
        r.send({"op": "go on"})
        rest = r.finish(nonce)
        self.assertEqual((rest.out, len(rest.results)), (b"after\n", 1), rest)

    def test_large_values_are_left_out(self):
        context = self.r()
        answer = context.cell("strrep('x', 5e6)")
        self.assertEqual([(r["data"], r["left_out"]) for r in answer.results], [({}, [{"mime": "text/plain", "bytes": 5_000_006}])])

    def test_quit_is_reported_and_ends_the_context(self):
        for code, status in (("q()", 0), ("quit(status = 3)", 3), ("f <- function() q('no', 4); f()", 4)):
            context = self.r()
            answer = context.cell("cat('first\\n'); " + code)
            self.assertEqual((bytes(answer.out), answer.done["exit"], answer.done["ended"], answer.done["ok"]), (b"first\n", status, True, status == 0), answer)
            with self.assertRaises(Died) as ended:
                context.cell("1")
            self.assertEqual(ended.exception.status, status)

    def test_sigint_ends_the_cell_only(self):
        context = self.r()
        context.cell("kept <- 42")
        for code in ("cat('ready\\n'); Sys.sleep(100)", "cat('ready\\n'); while (TRUE) {}", "f <- function() repeat sum(1:10)\ncat('ready\\n'); f()"):
            sent = []

            def send(context, answer):
                if not sent and b"ready\n" in answer.out:
                    sent.append(True)
                    context.interrupt()

            answer = context.cell(code, send)
            self.assertEqual((answer.done["ok"], answer.error["name"]), (False, "Interrupt"), answer)
            self.assertEqual(context.cell("kept").text, "[1] 42")
        for _ in range(20):
            context.interrupt()
            context.ping()
        self.assertEqual(context.cell("kept").text, "[1] 42")

    def test_one_that_waits_shows_no_directory_and_tells_of_new_libraries(self):
        library, temporary = self.directory(), self.directory()
        place = pathlib.Path(library, "new")
        context = self.r(env={"R_LIBS_USER": str(place), "TMPDIR": temporary})
        self.assertFalse(context.is_unchanged())
        context.send({"op": "wait"})
        context.ping()
        self.assertEqual(list(pathlib.Path(temporary).iterdir()), [])
        self.assertTrue(context.is_unchanged())
        self.assertEqual(context.cell("dir.exists(tempdir())").text, "[1] TRUE")
        place.mkdir()
        self.assertFalse(context.is_unchanged())
        self.assertEqual(context.close(), 0)

    def test_one_that_waits_in_a_directory_that_is_gone_is_no_spare(self):
        place = pathlib.Path(self.directory(), "work")
        place.mkdir()
        context = self.r(cwd=place)
        context.send({"op": "wait"})
        self.assertTrue(context.is_unchanged())
        place.rmdir()
        self.assertFalse(context.is_unchanged())
        place.mkdir()
        self.assertFalse(context.is_unchanged())

    def test_json_of_any_writer(self):
        context = self.r()
        context.count += 1
        context.send(b' {"count" : %d, "op":"cell", "code": "cat(\\"\\u00e9\\ud83d\\ude00\\/\\\\\\\\n\\")", "nonce":"00112233445566aa"}' % context.count)
        self.assertEqual(context.finish("00112233445566aa").out.decode(), "é😀/\\n")
        context.ping()
        self.assertEqual(context.cell("# " + "é" * 200_000 + "\n5").text, "[1] 5")

    def test_commands_inherit_no_channel(self):
        context = self.r()
        answer = context.cell("cat(system('for f in /proc/self/fd/*; do readlink $f; done | grep -c pipe', intern = TRUE))")
        self.assertLessEqual(int(answer.out), 4, answer)
        self.assertEqual(context.cell("system('echo x >&4', ignore.stderr = TRUE) != 0").text, "[1] TRUE")

    def test_attacks_hurt_their_own_context(self):
        other = self.r()
        for code in ("closeAllConnections()", "rm(list = ls(all.names = TRUE), envir = globalenv())", "tools::pskill(Sys.getpid(), 9)", "paste0 <- function(...) stop()",
                     "stop <- tryCatch <- eval <- function(...) 1", "options(expressions = 25)", "options(error = quote(q()))", "invokeRestart('abort')"):
            context = self.r()
            try:
                context.cell(code, patience=5.0)
                context.cell("1", patience=5.0)
            except (Died, AssertionError) as error:
                print(f"{code}: {str(error)[:60]}")
            context.process.kill()
        self.assertEqual(other.cell("1").text, "[1] 1")


if __name__ == "__main__":
    celltest.main()
