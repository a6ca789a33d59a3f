"""Driver of a Python context: runs cells in one interpreter that keeps its state. Python 3.8 and later.

Started as  python3 -u -X utf8 -c BOOT  where BOOT reads this text and executes it in a dictionary of its own; -c TEXT
and a script file work as well. Form feeds divide the text: to compile all of it takes longer than to start the interpreter,
and most cells need the first part and the last one only. BOOT compiles these; put_off() sees to the others. Descriptor 3 brings requests, 4 takes replies; both are moved away before a cell runs.
A message is its length in decimal digits, a line feed, and that many bytes of JSON.

Everything here is the untrusted side: a cell can reach this code and change it. The supervisor believes an answer
about its own cell only.

Where the interpreter has IPython, its shell is loaded by the first cell that needs it: its import takes longer than most
cells. Cells before that give what they would give in it. With SBX_CELL_SHELL=ipython it is loaded at the start, with
SBX_CELL_SHELL=plain never."""

import sys

if sys.version_info < (3, 8):  # before anything that an older one lacks; exits with status 1
    sys.exit("sbx: cells need Python 3.8 or later, and this is %d.%d.%d" % sys.version_info[:3])

import builtins

# Functions below use this copy: a cell that replaces builtins does not change the driver.
__builtins__ = dict(vars(builtins))

import _signal as signal  # the module that signal wraps in Python
import _thread
import ast
import binascii
import errno
import fcntl
import json
import linecache
import os
import re
import stat
import termios
import time
import traceback
import types
import warnings

VALUE_BYTES = 4 << 20  # larger values are named in left_out
CELL_BYTES = 8 << 20  # all values of one cell
PATIENCE = 0.2  # seconds that one value waits for the reader of the pipes
LEFT_OUT = 1000  # values of one cell that left_out names
TEXT_CHARACTERS = 128 << 10  # of an error's value and traceback
TABLE_ROWS = 1000
JSON_BYTES = 256 << 10  # of a dict or list that has a form as JSON
JSON_DEPTH = 50
TABLE = "application/vnd.sbx.table+json"
TOP_LEVEL_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
CO_COROUTINE = 0x80
FUTURES = 0  # flags of the __future__ imports that cells made
for _name in __import__("__future__").all_feature_names:
    FUTURES |= getattr(__import__("__future__"), _name).compiler_flag

parts_put_off = globals().get("parts_put_off", ())  # of BOOT

# Bound now: a cell that replaces them, for a test of its own say, does not change the driver.
pattern = re.compile
to_json, from_json = json.dumps, json.loads
read, write, close, getpid, end_process = os.read, os.write, os.close, os.getpid, os._exit
ioctl, fstat, sleep = fcntl.ioctl, os.fstat, time.sleep

PLAIN = "plain"
IPYTHON = "ipython"


def move_up(descriptor):
    """Moves a descriptor out of the way of the cell's own, close-on-exec."""
    for lowest in (500, 100, 10):
        try:
            moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
            break
        except OSError as error:  # EINVAL: above RLIMIT_NOFILE
            if error.errno != errno.EINVAL:
                raise
    close(descriptor)
    return moved


class Channel:
    """The two pipes. Only the process that was started answers: a forked child never does."""

    def __init__(self):
        self.owner = getpid()
        self.requests = move_up(3)
        self.replies = move_up(4)
        for descriptor in (self.requests, self.replies):
            os.set_blocking(descriptor, True)
        self.lock = _thread.RLock()
        self.unread = bytearray()
        os.register_at_fork(after_in_child=self.close)

    def close(self):
        for descriptor in (self.requests, self.replies):
            try:
                close(descriptor)
            except OSError:
                pass
        self.requests = self.replies = -1

    def is_ours(self):
        return getpid() == self.owner

    def send_text(self, text):
        """Writes one message whole: an interrupt that arrives meanwhile is raised after it."""
        if not self.is_ours():
            return
        try:
            body = text.encode("utf-8")
        except UnicodeEncodeError:  # lone surrogates are not JSON
            body = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
        with self.lock, Postponed():
            rest = memoryview(b"%d\n%b" % (len(body), body))
            while rest:
                rest = rest[write(self.replies, rest) :]

    def send(self, **message):
        self.send_text(to_json(message, ensure_ascii=False))

    def bytes_until(self, enough):
        while True:
            size = enough(self.unread)
            if size is not None:
                taken = bytes(self.unread[:size])
                del self.unread[:size]
                return taken
            try:
                more = read(self.requests, 1 << 16)
            except KeyboardInterrupt:  # of a handler that a cell installed
                continue
            if not more:
                return None
            self.unread += more

    def receive(self):
        head = self.bytes_until(lambda unread: unread.index(b"\n") + 1 if b"\n" in unread else None)
        if head is None:
            return None
        size = int(head)
        body = self.bytes_until(lambda unread: size if len(unread) >= size else None)
        return None if body is None else from_json(body)


# Interrupts.


def ignore_interrupt(_number, _frame):
    """Between cells. A function and not SIG_IGN, which programs that the cell starts would inherit."""


def in_main_thread():
    return _thread.get_ident() == MAIN_THREAD


def acknowledge():
    """An interrupt is repeated until it is heard: one that comes just before a system call does not end the wait there."""
    try:
        if current is not None:
            current.heard = True
            channel.send(event="interrupted", nonce=current.nonce)
    except Exception:  # a cell has closed the channel
        pass


def interrupt(_number, frame):
    """The handler while a cell runs. Where the driver leaves the cell, an exception would end the context."""
    if frame is not None and frame.f_code in (guarded.__code__, disarm.__code__):
        guarded.missed = True
    else:
        acknowledge()
        raise KeyboardInterrupt


def interrupt_unheard(number, frame):
    """system(3) ignores SIGINT in this process while its child runs, so that a loop of such calls hears none. Who repeats SIGINT sends
    this signal with it, until it is heard."""
    if current is not None and not current.heard and signal.getsignal(signal.SIGINT) is interrupt:
        interrupt(number, frame)


def interrupt_again(cell):
    """In a thread of its own: the callback that could not be interrupted is over by then."""
    sleep(0.001)
    if current is cell:
        signal.pthread_kill(MAIN_THREAD, signal.SIGINT)


def heed_ignored(unraisable):
    """Python drops what a destructor or the callback of a weak reference raises. An interrupt is not lost with it."""
    if unraisable.exc_type is not KeyboardInterrupt or current is None or not channel.is_ours():
        return sys.__unraisablehook__(unraisable)
    _thread.start_new_thread(interrupt_again, (current,))


def be_the_default_handler():
    """Libraries compare: asyncio.run handles interrupts only where the handler is the default one."""
    for module in (signal, sys.modules.get("signal")):
        if module is not None:
            module.default_int_handler = interrupt


def arm():
    if signal.getsignal(signal.SIGINT) is ignore_interrupt:
        signal.signal(signal.SIGINT, interrupt)


def disarm():
    if signal.getsignal(signal.SIGINT) is interrupt:
        signal.signal(signal.SIGINT, ignore_interrupt)


class Postponed:
    """While it is entered, SIGINT does not raise KeyboardInterrupt. It does so at the end."""

    def __enter__(self):
        self.came = False
        self.armed = in_main_thread() and signal.getsignal(signal.SIGINT) is interrupt
        if self.armed:
            signal.signal(signal.SIGINT, self.note)

    def note(self, _number, _frame):
        self.came = True

    def __exit__(self, *_):
        if self.armed:
            signal.signal(signal.SIGINT, interrupt)
            if self.came:
                acknowledge()
                raise KeyboardInterrupt


def put_off(part):
    """Puts stand-ins in the places of a part's functions. The first one that is called compiles the part. Its classes and tables are
    for its own functions alone: they are not there before."""
    stand_ins = {}

    def compile_part():
        with loading, Postponed():
            if stand_ins:
                try:
                    exec(compile(part, "<sbx>", "exec"), OWN)
                except BaseException:
                    OWN.update(stand_ins)  # the next call tries again
                    raise
                stand_ins.clear()

    def stand_in(name):
        def call(*arguments, **named):
            compile_part()
            return OWN[name](*arguments, **named)

        return call

    for name in re.findall(r"^def (\w+)", part, re.MULTILINE):
        stand_ins[name] = OWN[name] = stand_in(name)


def unlock():
    """In a forked child: a thread that held it is not there."""
    global loading
    loading = _thread.RLock()


loading = _thread.RLock()
os.register_at_fork(after_in_child=unlock)


# The order of output and values: the reader counts the output that it has read when it reads a value. So a value waits
# until the output before it has been read, and the output after it until the value has been read.


def pipe_of(descriptor):
    """Says which pipe it is, None if it is none."""
    try:
        about = fstat(descriptor)
    except OSError:
        return None
    return (about.st_dev, about.st_ino) if stat.S_ISFIFO(about.st_mode) else None


def is_unread(descriptor):
    """Whether one of the driver's pipes holds bytes there. Nobody may read a pipe with which a cell replaced it."""
    try:
        return ioctl(descriptor, termios.FIONREAD, NO_BYTES) != NO_BYTES and pipe_of(descriptor) in PIPES
    except Exception:  # closed, no pipe, or an audit hook of a cell
        return False


def are_read(descriptors, patience):
    """Waits until the pipes are empty, and returns the rest of the patience; 0 if they were not within it.

    The pauses are counted as long as they were meant to be: a host that stops everything for a while stops the reader too."""
    pause = 0.0002
    for descriptor in descriptors:
        while is_unread(descriptor):
            if patience <= 0:
                return 0
            sleep(pause)
            patience -= pause
            pause = min(2 * pause, 0.002)
    return patience


def flush_before_value(cell):
    if cell.flushes:
        return  # a stream of the cell's own shows values when it is flushed
    cell.flushes = True
    try:
        flush_all()
    finally:
        cell.flushes = False


def send_in_order(cell, text, ends):
    """Sends a value between the output before it and after it; ends: there is none after it."""
    flush_before_value(cell)
    patience = are_read((1, 2), cell.patience)
    channel.send_text(text)
    if not ends:
        patience = are_read((channel.replies,), patience)
    # Nobody may be reading, or a child writes all the time: many values do not wait many times as long.
    cell.patience = PATIENCE if patience > 0 else cell.patience / 2


# Values and their forms.


def real_method(value, name):
    """A method of the value, unless the value pretends to have every method. Of a class: a method of the class itself."""
    try:
        if getattr(value, "_ipython_canary_method_should_not_exist_", None) is not None:
            return None
        method = getattr(value, name, None)
    except Exception:
        return None
    if isinstance(value, type) and not isinstance(method, types.MethodType):
        return None
    return method if callable(method) else None


def name_of(value):
    return getattr(type(value), "__name__", "object")


def said_by(error):
    try:
        return str(error)
    except Exception:
        return "<unprintable %s object>" % name_of(error)


def unprintable(value, error):
    return "<unprintable %s object: %s: %s>" % (name_of(value), name_of(error), said_by(error))


def complain(words):
    """One line on standard error that the cell's author needs."""
    try:
        print("sbx: " + words, file=sys.stderr)
    except Exception:
        pass


def text_of(value):
    if real_method(value, "_repr_pretty_") is not None:
        try:
            return printed(value)
        except Exception as error:
            complain("_repr_pretty_ of %s raised %s: %s" % (name_of(value), name_of(error), said_by(error)))
    try:
        return repr(value)
    except Exception as error:
        return unprintable(value, error)


METHODS = [  # in the order in which IPython asks them, with the types that it takes
    ("_repr_html_", "text/html", (str,)),
    ("_repr_markdown_", "text/markdown", (str,)),
    ("_repr_svg_", "image/svg+xml", (str,)),
    ("_repr_png_", "image/png", (bytes, str)),
    ("_repr_pdf_", "application/pdf", (bytes, str)),
    ("_repr_jpeg_", "image/jpeg", (bytes, str)),
    ("_repr_latex_", "text/latex", (str,)),
    ("_repr_json_", "application/json", (list, dict, str)),
    ("_repr_javascript_", "application/javascript", (str,)),
]


def checked(answer, name, value, kinds):
    """The answer of a method without its metadata, if it is of a kind that the method may give."""
    if isinstance(answer, tuple) and len(answer) == 2:
        answer = answer[0]
    if answer is None or isinstance(answer, kinds):
        return answer
    complain("%s of %s gave %s, not %s" % (name, name_of(value), name_of(answer), " or ".join(kind.__name__ for kind in kinds)))
    return None


def ask(value, name, kinds, *arguments, **named):
    """What a method answers, without its metadata; None if there is no such method or it fails."""
    method = real_method(value, name)
    if method is None:
        return None
    try:
        answer = method(*arguments, **named)
    except NotImplementedError:
        return None
    except Exception as error:
        complain("%s of %s raised %s: %s" % (name, name_of(value), name_of(error), said_by(error)))
        return None
    return checked(answer, name, value, kinds)


def forms_of(value, include=None, exclude=None):
    """The value's MIME bundle, as IPython's formatters make it; None if the value displayed itself."""
    display_itself = real_method(value, "_ipython_display_")
    if display_itself is not None:
        try:
            display_itself()
            return None
        except NotImplementedError:
            pass
        except Exception as error:
            complain("_ipython_display_ of %s raised %s: %s" % (name_of(value), name_of(error), said_by(error)))
    forms = select(ask(value, "_repr_mimebundle_", (dict,), include=include, exclude=exclude) or {}, include, exclude)
    if "text/plain" not in forms and is_wanted("text/plain", include, exclude):
        forms["text/plain"] = text_form(value)
    for method, mime, kinds in METHODS:
        if mime not in forms and is_wanted(mime, include, exclude):
            answer = ask(value, method, kinds)
            if answer is not None:
                forms[mime] = answer
    add_special_forms(value, forms)
    return select(forms, include, exclude)


def is_wanted(mime, include, exclude):
    return (not include or mime in include) and (not exclude or mime not in exclude)


def select(forms, include, exclude):
    return {mime: form for mime, form in forms.items() if is_wanted(mime, include, exclude)}


def add_json(value, forms):
    if (type(value) is dict or type(value) is list) and "application/json" not in forms:
        try:
            if is_small_json(value):
                forms["application/json"] = value
        except (UnicodeEncodeError, RuntimeError):  # half of a pair; another thread changes it
            pass


def add_special_forms(value, forms):
    """Forms that libraries leave to the front end: figures as pictures, data frames as tables, dicts and lists as JSON."""
    add_json(value, forms)
    try:
        figure = sys.modules.get("matplotlib.figure")
        if figure is not None and isinstance(value, figure.Figure):
            forms["image/png"] = picture_of(value)
            shown.append(value)
        pandas = sys.modules.get("pandas")
        if pandas is None:
            return
        if isinstance(value, pandas.Series) and "text/html" not in forms:
            html = ask(value.to_frame(), "_repr_html_", (str,))
            if html:
                forms["text/html"] = html
        if isinstance(value, (pandas.Series, pandas.DataFrame)):
            forms[TABLE] = table_of(value)
    except Exception as error:
        complain("a rich form of %s failed: %s: %s" % (name_of(value), name_of(error), said_by(error)))


def form_as_json(mime, form):
    """(JSON text, size in bytes) of one form. Bytes become base64."""
    if isinstance(form, (bytes, bytearray, memoryview)):
        form = binascii.b2a_base64(form, newline=False).decode("ascii")
    is_json = mime == "application/json" or mime.endswith("+json")
    if is_json and isinstance(form, str) and mime != TABLE:
        try:
            form = from_json(form)  # _repr_json_ may give the text
        except ValueError:
            pass
    if not is_json and not isinstance(form, str):
        form = str(form)
    try:
        text = to_json(form, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):
        text = to_json(without_nan(form), ensure_ascii=False)
    whole = form if isinstance(form, str) else text
    return text, len(whole) if whole.isascii() else len(whole.encode("utf-8", "surrogatepass"))


def send_forms(forms, main=False, ends=False, display_id=None, update=False):
    """One result: each value within its cap and within the cell's, the others named. ends: the cell ends with it.
    display_id: the name of the display; update: a display of this name has other forms now."""
    cell = current
    if cell is None or not forms or not channel.is_ours():
        return  # a thread that outlived its cell
    values, left_out = [], []
    for mime, form in forms.items():
        if form is None:
            continue
        try:
            text, size = form_as_json(str(mime), form)
        except Exception as error:
            complain("the form %s is not JSON: %s" % (mime, said_by(error)))
            continue
        if size > VALUE_BYTES or cell.sent + size > CELL_BYTES:
            left_out.append({"mime": str(mime), "bytes": size})
        else:
            cell.sent += size + 100  # an event is not free
            values.append(to_json(str(mime)) + ":" + text)
    left_out = left_out[: LEFT_OUT - cell.left_out]
    cell.left_out += len(left_out)
    if not values and not left_out:
        return
    send_in_order(
        cell,
        '{"event":"result","nonce":%s,"main":%s,"data":{%s}%s%s%s}'
        % (
            to_json(cell.nonce),
            "true" if main else "false",
            ",".join(values),
            ',"left_out":' + to_json(left_out, ensure_ascii=False) if left_out else "",
            ',"display":' + to_json(str(display_id)) if display_id else "",
            ',"update":true' if display_id and update else "",
        ),
        ends,
    )


class DisplayHandle:
    def __init__(self, display_id=None):
        self.display_id = display_id or os.urandom(16).hex()

    def __repr__(self):
        return "<DisplayHandle display_id=%s>" % self.display_id

    def display(self, value, **named):
        display(value, display_id=self.display_id, **named)

    def update(self, value, **named):
        update_display(value, display_id=self.display_id, **named)


def display(*values, include=None, exclude=None, metadata=None, transient=None, display_id=None, raw=False, clear=False, update=False, **_):
    """Shows values in their rich forms."""
    if clear:
        clear_output(wait=True)
    display_id = display_id or (transient or {}).get("display_id")
    handle = DisplayHandle(None if display_id is True else str(display_id)) if display_id else None
    for value in values:
        forms = select(value, include, exclude) if raw and isinstance(value, dict) else forms_of(value, include, exclude)
        send_forms(forms, display_id=handle and handle.display_id, update=update)
    return handle


def update_display(value, *, display_id, **named):
    """Gives the displays of this name the forms of another value."""
    named["update"] = True
    display(value, display_id=display_id, **named)


def clear_output(wait=False):
    """What the cell showed goes from a notebook, with wait=True when something new comes."""
    cell = current
    if cell is not None and channel.is_ours():
        send_in_order(cell, '{"event":"clear","nonce":%s,"wait":%s}' % (to_json(cell.nonce), "true" if wait else "false"), False)


def show_value(value):
    """sys.displayhook of the plain shell."""
    if value is not None and not (current is not None and current.quiet):
        builtins._ = value
        send_forms(forms_of(value), main=True, ends=current is not None and current.ends)


# Figures.

shown = []  # figures that the cell displayed itself


def picture_of(figure):
    import io

    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    return out.getvalue()


def show_figures(*_, **__):
    """pyplot.show(), and the end of a cell: every open figure once, then closed."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None:
        shown.clear()
        return
    try:
        for manager in helpers.Gcf.get_all_fig_managers():
            figure = manager.canvas.figure
            if not any(figure is other for other in shown):
                shown.append(figure)
                send_forms({"text/plain": text_of(figure), "image/png": picture_of(figure)})
    finally:
        shown.clear()
        helpers.Gcf.destroy_all()


def show_figure(figure, *_, **__):
    """Figure.show()"""
    if not any(figure is other for other in shown):
        send_forms({"text/plain": text_of(figure), "image/png": picture_of(figure)})
        shown.append(figure)


def hook_pyplot(pyplot):
    pyplot.show = show_figures


def hook_figure(module):
    module.Figure.show = show_figure


# multiprocessing with spawn and forkserver: the child imports the definitions of the cells as its main module.

sources = []  # (file name, text, flags) of the cells so far, the running one included
definitions = {"file": None, "count": 0}  # count: of the sources that the file holds

def hook_spawn(spawn):
    prepare = spawn.get_preparation_data

    def get_preparation_data(name):
        data = prepare(name)
        if "init_main_from_name" not in data and "init_main_from_path" not in data and sources:
            try:
                data["init_main_from_path"] = definitions_file()
            except Exception as error:
                complain("the spawned process gets no definitions of the cells: " + said_by(error))
        return data

    spawn.get_preparation_data = get_preparation_data


# Imports that the driver completes.


def hook_display(module):
    """IPython.display where IPython is importable but its shell is not used."""
    for name, function in (("display", display), ("update_display", update_display), ("clear_output", clear_output)):
        setattr(module, name, function)


def hook_asyncio(_module):
    if in_main_thread():
        prepare_loop()


HOOKS = {
    "asyncio": hook_asyncio,
    "matplotlib.pyplot": hook_pyplot,
    "matplotlib.figure": hook_figure,
    "multiprocessing.spawn": hook_spawn,
}


class Hooks:
    """A finder that lets the usual one find a module and runs a hook after its execution."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        hook = HOOKS.get(name)
        if hook is None:
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            try:
                hook(module)
            except Exception as error:
                complain("%s is not completed: %s" % (name, said_by(error)))

        try:
            spec.loader.exec_module = exec_module
        except AttributeError:
            pass
        return spec


class Minimal:
    """A finder of last resort: the part of IPython.display that notebooks use."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in ("IPython", "IPython.display"):
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, Minimal, is_package=name == "IPython")

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        if module.__name__ == "IPython":
            module.get_ipython = lambda: None
            module.version_info = (8, 24, 0, "")
            module.__version__ = "8.24.0"
        else:
            fill_display(module)


# Errors.


class UsageError(Exception):
    """A magic that this shell does not have, or that was used in another way."""


UsageError.__module__ = "builtins"  # shown without the name of a module


def is_cell(name):
    return name.startswith("<cell ") and name.endswith(">")


def is_foreign(frame):
    """A frame of the shell, which the author of the cell did not write."""
    return frame.f_globals is OWN or (shell_directory is not None and frame.f_code.co_filename.startswith(shell_directory))


def cut(text):
    if len(text) <= TEXT_CHARACTERS:
        return text
    half = TEXT_CHARACTERS // 2
    return "%s\n... %d characters left out ...\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


def kept_frames(error):
    """One truth value per entry of the error's traceback: whether the author of the cell sees it."""
    frames = []
    entry = error.__traceback__
    while entry is not None:
        frames.append(entry.tb_frame)
        entry = entry.tb_next
    first = next((at for at, frame in enumerate(frames) if is_cell(frame.f_code.co_filename)), None)
    if first is None:
        compiles = isinstance(error, SyntaxError) and is_cell(str(error.filename))
        return [not compiles and not is_foreign(frame) for frame in frames]
    return [at >= first and not is_foreign(frame) for at, frame in enumerate(frames)]


def hide_frames(report, error, seen):
    """Removes the driver's frames from a report and from the errors that it is chained to."""
    if report is None or error is None or id(error) in seen:
        return
    seen.add(id(error))
    kept = kept_frames(error)
    if report.stack is not None and len(kept) == len(report.stack):
        report.stack[:] = [entry for entry, keep in zip(report.stack, kept) if keep]
    hide_frames(report.__cause__, error.__cause__, seen)
    hide_frames(report.__context__, error.__context__, seen)
    for inner, group in zip(getattr(report, "exceptions", None) or (), getattr(error, "exceptions", None) or ()):
        hide_frames(inner, group, seen)


def traceback_of(error):
    if isinstance(error, SyntaxError) and error.text is None and error.lineno and is_cell(str(error.filename)):
        error.text = linecache.getline(error.filename, error.lineno) or None
    if name_of(error) == "UsageError" and type(error).__module__ == "IPython.core.error":
        return "UsageError: " + said_by(error)  # of a magic: no frame tells more
    report = traceback.TracebackException(type(error), error, error.__traceback__)
    hide_frames(report, error, set())
    if not report.stack and error.__cause__ is None and (error.__context__ is None or error.__suppress_context__):
        return "".join(report.format_exception_only())
    return "".join(report.format())


def line_of(error, name):
    """The line of this cell that failed: of the innermost frame in it, or of its syntax error."""
    if isinstance(error, SyntaxError) and error.filename == name:
        return error.lineno
    line = None
    entry = error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code.co_filename == name:
            line = entry.tb_lineno
        entry = entry.tb_next
    return line


def report_error(error):
    cell = current
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    value = said_by(error)  # first: an interrupt ends this, while the traceback module ignores it
    try:
        text = traceback_of(error)
    except Exception as other:
        text = "%s: %s\n(no traceback: %s)" % (name_of(error), value, name_of(other))
    channel.send(
        event="error",
        nonce=cell.nonce,
        name=name_of(error),
        value=cut(value),
        traceback=cut(text.rstrip("\n")),
        line=line_of(error, cell.name),
        **({"errno": cell.refusal.errno} if error is cell.refusal and error is not None else {})
    )


# Magics of the plain shell.

MAGIC_HINT = re.compile(r"^\s*(%|!|\?)|=\s*[!%]|\?\s*$", re.MULTILINE)
def tree_of(code, name="<input>", flags=0):
    """As ast.parse() gives it."""
    return compile(code, name, "exec", ast.PyCF_ONLY_AST | flags, True)


def parses(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree_of(code)
            return True
        except (SyntaxError, ValueError):
            return False


def with_magics(code):
    """The code with each magic as a call, every line where it was."""
    return code if not MAGIC_HINT.search(code) or parses(code) else with_calls(code)


def magic(kind, text, extra=None):
    """What the call in a transformed line runs."""
    return run_magic(kind, text, extra, sys._getframe(1))


def flush():
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass


# Running a cell.

loop = None  # the one event loop of the context, made when a cell could use it
broken_loops = []  # kept: the end of one would close its descriptors, which are a cell's files by now
NEED_A_LOOP = ("create_task", "get_running_loop", "TaskGroup")  # of asyncio: they fail where no event loop runs
RUN_A_LOOP = ("run", "Runner")  # of asyncio: they fail where one runs


def set_loop(asyncio):
    global loop
    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)


def prepare_loop():
    """Makes the context's event loop the current one of a cell: another cell can await what this one begins."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None:
        try:
            set_loop(asyncio)
        except Exception:  # no descriptor is left, say: an await tells
            pass


def needs_running_loop(text, tree=None):
    """Whether a cell uses, outside of functions, what needs a running event loop, as it runs in notebooks."""
    if not any(name in text for name in NEED_A_LOOP) or (tree is None and not parses(text)):
        return False
    return uses_running_loop(tree_of(text) if tree is None else tree)


async def evaluated(codes):
    """Runs the parts of a cell in one go, so that no task begins between them; returns the last one's value."""
    value = None
    for code in codes:
        value = eval(code, main)
        if code.co_flags & CO_COROUTINE:
            value = await value
    return value


def run_coroutine(coroutine):
    global loop
    import asyncio

    set_loop(asyncio)
    task = loop.create_task(coroutine)
    try:
        return loop.run_until_complete(task)
    except BaseException as error:
        if not task.done() and channel.is_ours():  # interrupted while the loop waited
            task.cancel()
            try:
                loop.run_until_complete(task)
                ended = current.told
            except BaseException as cancelled:
                ended = cancelled
            if isinstance(error, OSError) and not task.done():  # a cell closed the loop's descriptors
                broken_loops.append(loop)
                loop = None
            if isinstance(error, KeyboardInterrupt) and ended is not None:
                raise KeyboardInterrupt().with_traceback(ended.__traceback__) from None  # shows where the cell waited
        raise


def run_compiled(codes, needs_loop):
    """Runs the parts of a cell, each with a loop only if it awaits: asyncio.run in the others needs a thread without one."""
    if needs_loop and not (loop is not None and loop.is_running()):
        return run_coroutine(evaluated(codes))
    value = None
    for code in codes:
        value = eval(code, main)
        if code.co_flags & CO_COROUTINE:
            value = run_coroutine(value)
    return value


def is_quiet(lines, node):
    """Whether the statement ends with a semicolon."""
    rest = lines[node.end_lineno - 1].encode("utf-8", "surrogatepass")[node.end_col_offset :].decode("utf-8", "surrogatepass")
    return any(";" in line.partition("#")[0] for line in [rest] + lines[node.end_lineno :])


def run_code(text, name):
    """Runs the statements and returns the value of the last one, None if it has none or is silenced."""
    global futures
    flags = TOP_LEVEL_AWAIT | futures
    tree = tree_of(text, name, flags)
    needs_loop = needs_running_loop(text, tree)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body.pop()
    quiet = last is not None and is_quiet(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), last)
    body = compile(tree, name, "exec", flags, True) if tree.body else None
    if body is not None:
        futures |= body.co_flags & FUTURES
    value = None if last is None else compile(ast.Expression(last.value), name, "eval", TOP_LEVEL_AWAIT | futures, True)
    if name == current.name:
        sources.append((name, text, TOP_LEVEL_AWAIT | futures))
    del tree, last
    codes = [code for code in (body, value) if code is not None]
    answer = run_compiled(codes, needs_loop or (text_form is pretty_text and any(code.co_flags & CO_COROUTINE for code in codes)))
    current.quiet, current.has_value = quiet, value is not None
    return answer if value is not None else None


futures = 0


def run_and_show(text, cell):
    prepare_loop()
    value = run_code(text, cell.name)
    if cell.has_value:
        hook = sys.displayhook
        cell.ends = hook is show_value or hook is show_as_ipython
        hook(value)


def run_plain(cell):
    run_and_show(with_magics(cell.code), cell)


class Cell:
    def __init__(self, request):
        self.nonce = str(request["nonce"])
        self.count = int(request["count"])
        self.code = request["code"]
        self.name = "<cell %d>" % self.count
        self.sent = 0
        self.left_out = 0
        self.told = None
        self.patience = PATIENCE
        self.flushes = False
        self.heard = False  # an interrupt
        self.quiet = False  # a semicolon ends it: its value is not shown
        self.has_value = False
        self.ends = False  # whether nothing of the cell runs after the value that it shows next
        self.directory = request.get("cwd", "")
        self.variables = {name[4:]: value for name, value in request.items() if name.startswith("env:")}
        self.former = {}  # what these were before the cell
        self.origin = None  # where the interpreter was before the cell, open
        self.refusal = None  # why it can't begin in its directory

    def enter(self):
        """Makes what is the cell's own: variables, and the directory in which it begins."""
        for name, value in self.variables.items():
            self.former[name] = os.environ.get(name)
            os.environ[name] = value
        if self.directory:
            self.origin = os.open(".", os.O_PATH | os.O_DIRECTORY)
            home = self.directory == "~" or self.directory.startswith("~/")
            directory = os.environ.get("HOME", "~") + self.directory[1:] if home else self.directory
            try:
                os.chdir(directory)
            except OSError as error:
                self.refusal = error
                raise

    def leave(self):
        """Gives back what enter() replaced, whatever the cell has made of it."""
        for name, value in self.former.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if self.origin is not None:
            origin, self.origin = self.origin, None
            try:
                os.fchdir(origin)
            finally:
                os.close(origin)


current = None
questions = {}  # by name, what answers one of an editor


def guarded(function, *arguments):
    """Calls it so that SIGINT can interrupt it. Returns what it raised, or None."""
    failure = None
    guarded.missed = False
    try:
        arm()
        if guarded.missed:
            raise KeyboardInterrupt
        function(*arguments)
    except BaseException as error:
        failure = error
    disarm()
    return failure


def end_child(failure):
    """A child that a cell forked ends where the cell does, like a script of its own."""
    code = 0
    try:
        if isinstance(failure, SystemExit):
            code = exit_code(failure)
        elif failure is not None:
            code = 1
            sys.stderr.write(traceback_of(failure))
        flush_all()
    finally:
        end_process(code & 0xFF)


def exit_code(error):
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code)
    print(code, file=sys.stderr)
    return 1


def flush_libc():
    """C code of an imported extension may have buffered output."""
    if len(sys.modules) != flush_libc.modules:
        flush_libc.modules = len(sys.modules)
        if flush_libc.function is None:
            files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
            if any(isinstance(file, str) and file.endswith(".so") and ("lib-dynload" not in file or "_ctypes" in file) for file in files):
                import ctypes

                flush_libc.function = ctypes.CDLL(None).fflush
    if flush_libc.function is not None:
        flush_libc.function(None)


flush_libc.modules = 0
flush_libc.function = None


def flush_all():
    flush()
    try:
        flush_libc()
    except Exception:
        pass


def end_of_cell():
    try:
        show_figures()
    finally:
        flush_all()


def heal():
    """Restores what the driver and the standard library need, after a cell made reporting impossible."""
    vars(builtins).update((name, value) for name, value in saved_builtins.items() if name != "_")
    if sys.getrecursionlimit() < 200:
        sys.setrecursionlimit(1000)


def prepare_streams():
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name, None)
        try:
            closed = stream.closed
        except Exception:
            continue
        if closed is True and stream is getattr(sys, "__%s__" % name):
            try:
                stream = open(descriptor, "w", buffering=1, encoding="utf-8", errors="surrogateescape" if descriptor == 1 else "backslashreplace", closefd=False)
            except (OSError, ValueError):
                continue
            setattr(sys, name, stream)
            setattr(sys, "__%s__" % name, stream)


def lines_of(code):
    """As linecache reads files: its users take the end of the last line for a line feed."""
    lines = code.splitlines(True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines


def run_cell(request):
    global current
    cell = current = Cell(request)
    linecache.cache[cell.name] = (len(cell.code), None, lines_of(cell.code), cell.name)
    main.pop("__warningregistry__", None)  # a line of another cell is not this one
    prepare_streams()
    failure = guarded(cell.enter) or guarded(run_in_shell, cell)
    if not channel.is_ours():
        end_child(failure)
    late = guarded(end_of_cell)
    failure = failure or late
    code = None
    if isinstance(failure, SystemExit):
        code = 1
        wrong = guarded(lambda: setattr(cell, "exit", exit_code(failure)))
        code = cell.exit if wrong is None else 1
    elif failure is not None:
        wrong = guarded(report_error, failure)
        if wrong is not None:
            heal()
            if guarded(report_error, wrong if isinstance(wrong, KeyboardInterrupt) else failure) is not None:
                channel.send(event="error", nonce=cell.nonce, name=type(failure).__name__, value="", traceback="", line=None)
        flush_all()
    current = None
    try:
        cell.leave()
    except Exception as error:
        complain("the cell's directory or variables could not be left: %s: %s" % (name_of(error), said_by(error)))
    done = {"event": "done", "nonce": cell.nonce, "count": cell.count, "ok": failure is None or code == 0}
    if code is not None:
        done["exit"] = code
    try:
        channel.send(**done)
    except (OSError, MemoryError):
        raise
    except Exception:
        heal()
        channel.send(**done)


# Cells before IPython's shell is loaded: they give what they would give in it.

OUTPUTS = 1000  # of Out: IPython forgets the oldest of more
NEEDS_IPYTHON = re.compile(r"\bIPython\b|\bget_ipython\b|\b_dh\b|^(>>>|\.\.\.|In \[|\s+\.\.\.)|\A[ \t]", re.MULTILINE)
FIRST_NAME = re.compile(r"([^\W\d]\w*)(?![\w\"'])")
EXITS = re.compile(r"(exit|quit)(\s*\(.*\))?$")
SCALARS = (int, float, complex, bool, str, bytes, type(None))


class History:
    """In, Out, _ and their kin, named and kept as IPython does. Its shell takes them over when it is loaded."""

    def __init__(self):
        self.inputs, self.raw, self.outputs, self.texts = [""], [""], {}, {}
        self.last_inputs = ["", "", "", ""]
        self.last_values = {"_": "", "__": "", "___": ""}
        self.directories = [os.getcwd()]
        self.names = {"_ih": self.inputs, "In": self.inputs, "_oh": self.outputs, "Out": self.outputs}

    def take_input(self, cell):
        code = cell.code.rstrip("\n")
        if EXITS.match(code.strip()):
            return
        self.inputs.append(code)
        self.raw.append(code)
        self.last_inputs = [code] + self.last_inputs[:3]
        main.update(zip(("_i%d" % cell.count, "_i", "_ii", "_iii"), self.last_inputs))

    def is_translation(self):
        """Whether gettext has installed its function as _: the last value leaves it alone."""
        if "_" in vars(builtins) and "_" in main and main["_"] is self.last_values["_"]:
            del main["_"]
        return "_" in vars(builtins)

    def take_output(self, value, count):
        if value is self.outputs:
            return
        ours = all(main.get(name, last) is last for name, last in self.last_values.items())
        self.last_values = {"_": value, "__": self.last_values["_"], "___": self.last_values["__"]}
        if ours and not self.is_translation():
            main.update(self.last_values)
        main["_%d" % count] = self.outputs[count] = value

    def hand_over(self, shell):
        manager, hook = shell.history_manager, shell.displayhook
        manager.input_hist_parsed, manager.input_hist_raw = self.inputs, self.raw
        manager.output_hist, manager.output_hist_reprs = self.outputs, self.texts
        manager._i00, manager._i, manager._ii, manager._iii = self.last_inputs
        for name, value in self.last_values.items():
            setattr(hook, name, value)
        shell.user_ns_hidden.update(self.names)


def part_of_ipython(name):
    """A module of IPython, executed from its file alone and not kept in sys.modules: the import of the package takes long."""
    if name not in parts:
        from importlib.machinery import SourceFileLoader

        path = shell_directory + name.partition(".")[2].replace(".", os.sep)
        path += os.sep + "__init__.py" if os.path.isdir(path) else ".py"
        module = parts[name] = types.ModuleType(name)
        module.__file__, module.__package__ = path, name.rpartition(".")[0]
        module.__builtins__ = dict(__builtins__, __import__=import_part)
        exec(SourceFileLoader(name, path).get_code(name), vars(module))
    return parts[name]


def import_part(name, globals=None, locals=None, fromlist=(), level=0):
    """__import__ of these modules."""
    if level:
        from importlib.util import resolve_name

        name = resolve_name("." * level + name, globals["__package__"])
    return part_of_ipython(name) if name.startswith("IPython.") else __import__(name, globals, locals, fromlist)


parts = {}


def pretty_text(value):
    """As IPython's shell prints a value."""
    try:
        if type(value) in SCALARS:
            return repr(value)
        import io

        stream = io.StringIO()
        printer = part_of_ipython("IPython.lib.pretty").RepresentationPrinter(stream)
        printer.pretty(value)
        printer.flush()
        return stream.getvalue()
    except Exception:
        return text_of(value)


def show_as_ipython(value):
    """sys.displayhook of these cells."""
    history.is_translation()
    if value is not None and not (current is not None and current.quiet):
        forms = forms_of(value)
        history.take_output(value, current.count)
        if forms:
            history.texts[current.count] = forms.get("text/plain", "")
            send_forms(forms, main=True, ends=current.ends)
        flush()


def compiles(cell):
    with warnings.catch_warnings():  # the real compilation warns
        warnings.simplefilter("ignore")
        try:
            compile(cell.code, cell.name, "exec", TOP_LEVEL_AWAIT | futures, True)
            return True
        except Exception:
            return False


def may_be_a_magic(code):
    """Whether it is one line that begins with an unknown name, as in ls -l: IPython takes it for %ls -l if there is one."""
    found = FIRST_NAME.match(code)
    if found is None or len(code.splitlines()) != 1 or found.group(1) in main or found.group(1) in vars(builtins):
        return False
    import keyword

    return not keyword.iskeyword(found.group(1)) and isinstance(tree_of(code).body[0], ast.Expr)


def needs_ipython(cell):
    if "IPython" in sys.modules or NEEDS_IPYTHON.search(cell.code) or len(history.outputs) >= OUTPUTS:
        return True
    return not compiles(cell) or may_be_a_magic(cell.code)


def run_as_ipython(cell):
    if cell.code.strip():
        if needs_ipython(cell):
            load_ipython()
            return run_in_shell(cell)
        history.take_input(cell)
        sys.displayhook = show_as_ipython
        run_and_show(cell.code, cell)
    return None


def get_ipython():
    """In cells, until IPython's shell is loaded."""
    return load_ipython()


def hook_ipython(_module):
    if in_main_thread():
        load_ipython()


def hook_console(module):
    """pandas asks whether IPython's kernel shows it. The answer does not need the shell."""
    module.get_ipython = lambda: None


def prepare_ipython():
    global text_form, history
    history = History()
    main.update(history.names, **history.last_values, _dh=history.directories, get_ipython=get_ipython)
    text_form = pretty_text
    builtins.display, builtins.get_ipython, builtins.__IPYTHON__ = display, get_ipython, True
    sys.ps1, sys.ps2, sys.ps3 = "In : ", "...: ", "Out: "
    sys.setrecursionlimit(max(3000, sys.getrecursionlimit()))  # what jedi sets, which IPython imports
    HOOKS.update({"IPython": hook_ipython, "pandas.io.formats.console": hook_console})


history = None
ipython = None  # its shell, once it is loaded


class Quit:
    """exit and quit: as site's, but they leave standard input open."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return "Use %s() to end the cell" % self.name

    def __call__(self, code=None):
        raise SystemExit(code)


def use_plain_shell():
    global run_in_shell, text_form
    run_in_shell, text_form = run_plain, text_of
    builtins.display = display
    builtins.__sbx_magic__ = magic
    sys.displayhook = show_value
    HOOKS["IPython.display"] = hook_display
    sys.meta_path.append(Minimal)


def directory_of_ipython():
    """None if the interpreter has no IPython."""
    from importlib.util import find_spec

    spec = find_spec("IPython")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return os.path.join(os.path.abspath(places[0]), "") if places else None


def find_shell():
    """Returns its name."""
    global run_in_shell, shell_directory
    wanted = os.environ.get("SBX_CELL_SHELL")
    shell_directory = None if wanted == PLAIN else directory_of_ipython()
    if shell_directory is None:
        use_plain_shell()
        return PLAIN
    run_in_shell = run_as_ipython
    prepare_ipython()
    if wanted == IPYTHON:
        load_ipython()
    return PLAIN if run_in_shell is run_plain else IPYTHON


def serve():
    found_by_start = None
    shell = find_shell()
    saved_builtins.update(vars(builtins))
    channel.send(event="ready", language="python", version="%d.%d.%d" % sys.version_info[:3], shell=shell)
    while True:
        request = channel.receive()
        if request is None:
            return
        if request.get("op") == "cell":
            run_cell(request)
        elif request.get("op") == "inspect":
            inspect(request)
        elif request.get("op") == "wait":
            found_by_start = found_now()
        elif request.get("op") == "unchanged":
            channel.send(event="unchanged", unchanged=is_unchanged(found_by_start))
        elif request.get("op") == "ping":
            channel.send(event="pong")


def start():
    """Serves until the requests end. A forked child that comes here ends too."""
    try:
        serve()
        code = 0
    except BaseException as error:  # a cell closed the channel, or memory is exhausted
        complain("the context ends: %s: %s" % (name_of(error), said_by(error)))
        code = 1
    if channel.is_ours():
        import atexit

        try:
            atexit._run_exitfuncs()
        except BaseException:
            pass
    flush_all()
    end_process(code)


class Group:
    """A part of what a Printer prints, as a context manager."""

    def __init__(self, printer, indent, open, close):
        self.printer, self.indent, self.open, self.close = printer, indent, open, close

    def __enter__(self):
        self.printer.begin_group(self.indent, self.open)

    def __exit__(self, *_):
        self.printer.end_group(self.indent, self.close)


class Printer:
    """What a _repr_pretty_ method of a value writes to: all on one line but where it asks for a new one."""

    def __init__(self):
        self.parts = []
        self.indentation = 0
        self.open = []  # ids of the values that are being printed

    def text(self, text):
        self.parts.append(text)

    def breakable(self, sep=" "):
        self.text(sep)

    def break_(self):
        self.text("\n" + " " * self.indentation)

    def begin_group(self, indent=0, open=""):
        self.text(open)
        self.indentation += indent

    def end_group(self, dedent=0, close=""):
        self.indentation -= dedent
        self.text(close)

    def group(self, indent=0, open="", close=""):
        return Group(self, indent, open, close)

    def indent(self, indent):
        return self.group(indent)

    def pretty(self, value):
        method = real_method(value, "_repr_pretty_")
        if method is None:
            return self.text(repr(value))
        cycle = id(value) in self.open
        self.open.append(id(value))
        try:
            method(self, cycle)
        finally:
            self.open.pop()


def printed(value):
    printer = Printer()
    printer.pretty(value)
    return "".join(printer.parts)


def is_small_json(value):
    """Whether a dict or list holds nothing but what JSON has, so that who reads it gets equal values. No code of the value's runs."""
    pending, left = [(value, 1)], JSON_BYTES
    while pending:
        each, depth = pending.pop()
        kind = type(each)
        if kind is str:
            left -= len(each if each.isascii() else each.encode("utf-8"))  # raises where it is not a text
        elif kind is dict or kind is list:
            left -= 8 * len(each)
            if depth > JSON_DEPTH or left < 0 or (kind is dict and any(type(key) is not str for key in each)):
                return False
            inner = [*each, *each.values()] if kind is dict else each
            pending.extend((item, depth + 1) for item in inner)
        elif kind is int:
            if not -(1 << 53) <= each <= 1 << 53:  # readers keep numbers as doubles
                return False
        elif kind is float:
            if not -float("inf") < each < float("inf"):
                return False
        elif each is not None and kind is not bool:
            return False
        if left < 0:
            return False
    return True


def cell_of_table(value):
    """A value of a data frame as JSON: numbers, texts and truth values as they are, nothing as null."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -(1 << 53) <= value <= 1 << 53 else str(value)
    if isinstance(value, float):
        return float(value) if -float("inf") < value < float("inf") else None
    item = getattr(value, "item", None)  # a scalar of numpy
    if item is not None and getattr(value, "shape", None) == () and type(value).__module__ == "numpy":
        plain = item()
        if isinstance(plain, (bool, int, float, str)):
            return cell_of_table(plain)
    if value != value or type(value).__name__ in ("NaTType", "NAType"):  # NaT, NA
        return None
    isoformat = getattr(value, "isoformat", None)
    return isoformat() if callable(isoformat) else str(value)


def safe_cell_of_table(value):
    try:
        return cell_of_table(value)
    except Exception:
        return text_of(value)


def label_of(name):
    return ".".join(map(str, name)) if isinstance(name, tuple) else "" if name is None else str(name)


def table_of(frame):
    """{columns, rows, total}; an index that is more than 0, 1, 2, ... comes first, as columns with "index": true."""
    total = len(frame)
    head = frame.head(TABLE_ROWS)
    if not hasattr(frame, "columns"):
        head = head.to_frame()
    columns, series = [], []
    index = head.index
    if type(index).__name__ != "RangeIndex" or index.name is not None:
        for level in range(index.nlevels):
            values = index.get_level_values(level)
            columns.append({"name": label_of(index.names[level]), "dtype": str(values.dtype), "index": True})
            series.append(values)
    for position, name in enumerate(head.columns):
        values = head.iloc[:, position]
        columns.append({"name": label_of(name), "dtype": str(values.dtype)})
        series.append(values)
    rows = [[safe_cell_of_table(value) for value in row] for row in zip(*series)] if series else []
    return {"columns": columns, "rows": rows, "total": total}


def without_nan(value):
    """A copy that JSON can express: NaN and infinities as null, keys as text, other objects as text."""
    if isinstance(value, float):
        return value if -float("inf") < value < float("inf") else None
    if isinstance(value, dict):
        return {str(key): without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return text_of(value)


REBUILD = """import marshal
for _code in marshal.loads(%r):
    try:
        exec(_code, globals())
    except Exception:
        pass
"""


def is_definition(node):
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return True
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        try:
            ast.literal_eval(node.value)
            return True
        except Exception:
            return False
    return False


def definitions_file():
    import marshal
    import tempfile

    if definitions["count"] != len(sources):
        codes = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, text, flags in sources:
                for node in tree_of(text, name, flags).body:
                    if is_definition(node):
                        try:
                            codes.append(compile(ast.Module([node], []), name, "exec", flags, True))
                        except Exception:
                            pass
        if definitions["file"] is None:
            import atexit

            descriptor, definitions["file"] = tempfile.mkstemp(prefix="cells-", suffix=".py")
            close(descriptor)
            atexit.register(forget_definitions)
        with open(definitions["file"], "w", encoding="utf-8") as file:
            file.write(REBUILD % marshal.dumps(codes))
        definitions["count"] = len(sources)
    return definitions["file"]


def forget_definitions():
    if channel.is_ours():
        try:
            os.unlink(definitions["file"])
        except OSError:
            pass


def fill_display(module):
    class DisplayObject:
        def __init__(self, data=None, url=None, filename=None, metadata=None, **_):
            if data is not None and isinstance(data, (str, bytes)) is False and hasattr(data, "__fspath__"):
                data, filename = None, os.fspath(data)
            self.url, self.filename, self.metadata, self.data = url, filename, metadata, data
            if filename is not None and data is None:
                with open(filename, "rb") as file:
                    self.data = file.read()
                if self.textual:
                    self.data = self.data.decode("utf-8", "replace")

        textual = True

    def kind(name, mime, around="%s"):
        def bundle(self, include=None, exclude=None):
            return {mime: self.data if mime == "application/json" else around % (self.data,)}

        made = type(name, (DisplayObject,), {"_repr_mimebundle_": bundle, "__module__": "IPython.display"})
        made.__repr__ = lambda self: "<IPython.core.display.%s object>" % name
        setattr(module, name, made)

    kind("HTML", "text/html")
    kind("Markdown", "text/markdown")
    kind("Latex", "text/latex")
    kind("Math", "text/latex", "$\\displaystyle %s$")
    kind("SVG", "image/svg+xml")
    kind("JSON", "application/json")
    kind("Javascript", "application/javascript")
    kind("Pretty", "text/plain")

    class Image(DisplayObject):
        textual = False

        def __init__(self, data=None, url=None, filename=None, format=None, width=None, height=None, **named):
            if isinstance(data, str) and re.match(r"https?://", data):
                data, url = None, data
            elif isinstance(data, str) and os.path.exists(data):
                data, filename = None, data
            super().__init__(data, url, filename, **named)
            self.format, self.width, self.height = format, width, height

        def _repr_mimebundle_(self, include=None, exclude=None):
            if self.data is None:
                sizes = "".join(' %s="%s"' % (k, v) for k, v in (("width", self.width), ("height", self.height)) if v)
                return {"text/html": '<img src="%s"%s/>' % (self.url, sizes)}
            for start, mime in ((b"\x89PNG", "image/png"), (b"\xff\xd8", "image/jpeg"), (b"GIF8", "image/gif"), (b"%PDF", "application/pdf")):
                if bytes(self.data[:4]).startswith(start) if not isinstance(self.data, str) else False:
                    return {mime: self.data}
            return {"image/" + {"jpg": "jpeg"}.get(self.format, self.format or "png"): self.data}

        def __repr__(self):
            return "<IPython.core.display.Image object>"

    class IFrame:
        def __init__(self, src, width="100%", height=400, **_):
            self.src, self.width, self.height = src, width, height

        def _repr_html_(self):
            return '<iframe width="%s" height="%s" src="%s" frameborder="0" allowfullscreen></iframe>' % (self.width, self.height, self.src)

    def only(name, mime, method):
        def show(*values, raw=False, **_):
            for value in values:
                send_forms({mime: value} if raw else forms_of(value, include=["text/plain", mime]))

        setattr(module, name, show)

    only("display_html", "text/html", "_repr_html_")
    only("display_markdown", "text/markdown", "_repr_markdown_")
    only("display_latex", "text/latex", "_repr_latex_")
    only("display_png", "image/png", "_repr_png_")
    only("display_svg", "image/svg+xml", "_repr_svg_")
    only("display_json", "application/json", "_repr_json_")
    module.DisplayObject, module.Image, module.IFrame, module.DisplayHandle = DisplayObject, Image, IFrame, DisplayHandle
    module.display, module.update_display, module.clear_output = display, update_display, clear_output


ASSIGNED = pattern(r"^(\s*)([\w.,\[\]'\"* ]+?)\s*=\s*([!%])(?!=)(.*)$")
ASKED = pattern(r"^(\s*)(\?{1,2}\s*([%\w.]+)|([%\w.]+)\s*\?{1,2})\s*$")
PIECE = pattern(r"\"\"\"|'''|[\"'()\[\]{}#]")


class Scanner:
    """Tells for each line whether a statement can begin on it: outside brackets, strings and continued lines."""

    def __init__(self):
        self.string = None
        self.depth = 0
        self.continued = False

    def begins(self):
        return self.string is None and self.depth == 0 and not self.continued

    def string_end(self, line, at):
        while at < len(line):
            if line[at] == "\\":
                at += 2
            elif line.startswith(self.string, at):
                return at + len(self.string)
            else:
                at += 1
        return None

    def take(self, line):
        at, self.continued = 0, False
        while True:
            if self.string is not None:
                at = self.string_end(line, at)
                if at is None:
                    if len(self.string) == 1 and not line.endswith("\\"):
                        self.string = None
                    return
                self.string = None
            piece = PIECE.search(line, at)
            if piece is None:
                self.continued = line.endswith("\\")
                return
            found, at = piece.group(), piece.end()
            if found == "#":
                return
            if found[0] in "\"'":
                self.string = found
            else:
                self.depth = max(0, self.depth + (1 if found in "([{" else -1))


def with_calls(code):
    lead = len(code) - len(code.lstrip("\r\n"))
    if code[lead : lead + 2] == "%%":
        head, _, body = code[lead + 2 :].partition("\n")
        return "\n" * code[:lead].count("\n") + "__sbx_magic__('cell', %r, %r)" % (head, "\n" * (code[:lead].count("\n") + 1) + body)
    lines, scanner, at = code.split("\n"), Scanner(), 0
    while at < len(lines):
        line, call = lines[at], None
        if scanner.begins():
            text, last = line, at
            while text.endswith("\\") and last + 1 < len(lines):
                last += 1
                text = text[:-1] + lines[last]
            call = magic_call(text)
            if call is not None:
                lines[at : last + 1] = [call] + [""] * (last - at)
                at = last
        if call is None:
            scanner.take(line)
        at += 1
    return "\n".join(lines)


def magic_call(line):
    text = line.strip()
    indent = line[: len(line) - len(line.lstrip())]
    asked = ASKED.match(line)
    if asked:
        return "%s__sbx_magic__('help', %r, %r)" % (indent, asked.group(3) or asked.group(4), "??" in text)
    if text.startswith("!"):
        kind, command = ("lines", text[2:]) if text.startswith("!!") else ("system", text[1:])
        return "%s__sbx_magic__(%r, %r)" % (indent, kind, command)
    if text.startswith("%") and text[1:2].isalpha():
        return "%s__sbx_magic__('line', %r)" % (indent, text[1:])
    assigned = ASSIGNED.match(line)
    if assigned:
        kind = "lines" if assigned.group(3) == "!" else "line"
        return "%s%s = __sbx_magic__(%r, %r)" % (indent, assigned.group(2), kind, assigned.group(4).strip())
    return None


def expanded(text, frame):
    """$name and {expression} as IPython replaces them in commands."""

    def value(found):
        name, expression = found.group(1), found.group(2)
        try:
            if name is not None:
                return str(frame.f_locals[name] if name in frame.f_locals else frame.f_globals[name])
            return str(eval(expression, frame.f_globals, frame.f_locals))
        except Exception:
            return found.group()

    return re.sub(r"(?<![\\$])\$([A-Za-z_]\w*)|\{([^{}]+)\}", value, text)


def run_command(command, **named):
    import subprocess

    flush()
    ended = subprocess.run(command, stdin=None if "input" in named else subprocess.DEVNULL, **named)
    main["_exit_code"] = ended.returncode
    return ended


def run_magic(kind, text, extra, frame):
    if kind == "system":
        run_command(expanded(text, frame), shell=True)
        return None
    if kind == "lines":
        import subprocess

        ended = run_command(expanded(text, frame), shell=True, stdout=subprocess.PIPE)
        return ended.stdout.decode("utf-8", "replace").splitlines()
    if kind == "help":
        return tell_about(text, extra)
    name, _, arguments = text.strip().partition(" ")
    arguments = arguments.strip()
    functions = CELL_MAGICS if kind == "cell" else LINE_MAGICS
    function = functions.get(name)
    if function is None:
        mark = "%%" if kind == "cell" else "%"
        raise UsageError("%s%s is not one of the magics of this shell, which are %s." % (mark, name, ", ".join(mark + other for other in sorted(functions))))
    if name not in ("timeit", "time"):
        arguments = expanded(arguments, frame)
    return function(arguments, extra) if kind == "cell" else function(arguments)


def tell_about(name, with_source):
    import inspect

    if name.startswith("%"):
        known = name.lstrip("%") in LINE_MAGICS or name.lstrip("%") in CELL_MAGICS
        print("%s is %s of this shell." % (name, "a magic" if known else "not a magic"))
        return
    try:
        value = eval(name, main)
    except Exception:
        print("Object `%s` not found." % name)
        return
    if callable(value):
        try:
            print("Signature: %s%s" % (name, inspect.signature(value)))
        except (TypeError, ValueError):
            pass
    else:
        print("Value:     %s" % cut(text_of(value)))
    print("Type:      %s" % type(value).__name__)
    if with_source:
        try:
            print("Source:\n%s" % inspect.getsource(value).rstrip())
            return
        except (TypeError, OSError):
            pass
    print("Docstring: %s" % (inspect.getdoc(value) or "<no docstring>"))


def duration(seconds):
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return "%.3g %s" % (seconds / size, unit)
    return "%.3g ns" % (seconds * 1e9)


def magic_timeit(arguments, body=None):
    import timeit

    number, repeat, rest = 0, 7, arguments
    while True:
        option = re.match(r"-(n|r)\s*(\d+)\s*", rest) or re.match(r"-(q|o|c|t)\s+()", rest)
        if not option:
            break
        if option.group(1) == "n":
            number = int(option.group(2))
        elif option.group(1) == "r":
            repeat = int(option.group(2))
        rest = rest[option.end() :]
    timer = timeit.Timer(rest or "pass", globals=main) if body is None else timeit.Timer(body, rest or "pass", globals=main)
    number = number or timer.autorange()[0]
    times = [time / number for time in timer.repeat(repeat, number)]
    mean = sum(times) / len(times)
    deviation = (sum((time - mean) ** 2 for time in times) / len(times)) ** 0.5
    print(
        "%s ± %s per loop (mean ± std. dev. of %d run%s, %s loop%s each)"
        % (duration(mean), duration(deviation), repeat, "" if repeat == 1 else "s", format(number, ","), "" if number == 1 else "s")
    )


def magic_time(arguments, body=None):
    import time

    before, cpu = time.perf_counter(), os.times()
    value = None
    try:
        value = run_code(arguments if body is None else body, current.name)
        value = None if current.quiet else value
    finally:
        after, used = time.perf_counter(), os.times()
        user, system = used.user - cpu.user, used.system - cpu.system
        print("CPU times: user %s, sys: %s, total: %s" % (duration(user), duration(system), duration(user + system)))
        print("Wall time: %s" % duration(after - before))
    return value


def magic_cd(arguments):
    previous = os.getcwd()
    target = arguments.strip("'\"") or "~"
    os.chdir(os.path.expanduser(magic_cd.previous if target == "-" else target))
    magic_cd.previous = previous
    print(os.getcwd())


magic_cd.previous = "."


def magic_env(arguments):
    name, mark, value = arguments.partition("=") if "=" in arguments else arguments.partition(" ")
    name = name.strip()
    if not name:
        return dict(os.environ)
    if not mark:
        return os.environ.get(name)
    os.environ[name] = value.strip()
    print("env: %s=%s" % (name, value.strip()))
    return None


def own_names():
    return sorted(name for name in main if not name.startswith("_"))


def magic_who(_):
    print("   ".join(own_names()) or "Interactive namespace is empty.")


def magic_whos(_):
    for name in own_names():
        print("%-16s %-16s %s" % (name, type(main[name]).__name__, cut(text_of(main[name]))[:60].replace("\n", " ")))


def magic_reset(_):
    for name in [name for name in main if not (name.startswith("__") and name.endswith("__"))]:
        del main[name]


def magic_run(arguments):
    import runpy
    import shlex

    words = shlex.split(arguments)
    if not words or words[0].startswith("-"):
        raise UsageError("%run takes a file and its arguments.")
    before = sys.argv
    sys.argv = words
    try:
        names = runpy.run_path(words[0], run_name="__main__")
    finally:
        sys.argv = before
    main.update((name, value) for name, value in names.items() if not name.startswith("__"))


def magic_shell(program):
    return lambda arguments: run_command(program + " " + arguments, shell=True) and None


def magic_pip(arguments):
    import shlex

    run_command([sys.executable, "-m", "pip"] + shlex.split(arguments))


def magic_accepted(_):
    """Has no effect here: pictures and reloading need no setting, or have none."""


def magic_load_ext(arguments):
    if arguments.strip() != "autoreload":
        raise UsageError("%load_ext needs IPython, which this interpreter does not have.")


LINE_MAGICS = {
    "timeit": magic_timeit,
    "time": magic_time,
    "cd": magic_cd,
    "pwd": lambda _: os.getcwd(),
    "env": magic_env,
    "set_env": magic_env,
    "who": magic_who,
    "whos": magic_whos,
    "reset": magic_reset,
    "run": magic_run,
    "pip": magic_pip,
    "matplotlib": magic_accepted,
    "config": magic_accepted,
    "autoreload": magic_accepted,
    "load_ext": magic_load_ext,
    "reload_ext": magic_load_ext,
    "lsmagic": lambda _: print("%" + "  %".join(sorted(LINE_MAGICS)) + "\n%%" + "  %%".join(sorted(CELL_MAGICS))),
}
for _name in ("ls", "cat", "mkdir", "rmdir", "cp", "mv", "rm"):
    LINE_MAGICS[_name] = magic_shell(_name)


def magic_script(program):
    def run(arguments, body):
        import shlex
        import subprocess

        words = shlex.split(arguments) if program is None else [program] + shlex.split(arguments)
        if not words:
            raise UsageError("%%script takes a program and its arguments.")
        ended = run_command(words, input=body.encode("utf-8", "surrogateescape"))
        if ended.returncode != 0:
            raise subprocess.CalledProcessError(ended.returncode, words)

    return run


def magic_writefile(arguments, body):
    words = arguments.split()
    appends = "-a" in words
    names = [word for word in words if word != "-a"]
    if not names:
        raise UsageError("%%writefile takes the name of a file, and -a before it to append.")
    path = os.path.expanduser(names[0].strip("'\""))
    print("%s %s" % ("Appending to" if appends else "Overwriting" if os.path.exists(path) else "Writing", path))
    with open(path, "a" if appends else "w", encoding="utf-8") as file:
        file.write(body.lstrip("\n") if body.startswith("\n") else body)


def magic_show(mime):
    return lambda _, body: send_forms({mime: body.lstrip("\n")})


class Captured:
    def __init__(self, out, err):
        self.stdout, self.stderr, self.outputs = out, err, []

    def show(self):
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)

    __call__ = show

    def __str__(self):
        return self.stdout


def magic_capture(arguments, body):
    import contextlib
    import io

    out, err, sent = io.StringIO(), io.StringIO(), current.sent
    name = arguments.split()[-1] if arguments.split() and not arguments.split()[-1].startswith("-") else None
    current.sent = CELL_BYTES + 1  # nothing is shown
    left_out, current.left_out = current.left_out, LEFT_OUT
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            run_code(body, current.name)
            show_figures()
    finally:
        current.sent, current.left_out = sent, left_out
        if name:
            main[name] = Captured(out.getvalue(), err.getvalue())


CELL_MAGICS = {
    "timeit": magic_timeit,
    "time": magic_time,
    "capture": magic_capture,
    "writefile": magic_writefile,
    "file": magic_writefile,
    "script": magic_script(None),
    "html": magic_show("text/html"),
    "HTML": magic_show("text/html"),
    "markdown": magic_show("text/markdown"),
    "latex": magic_show("text/latex"),
    "svg": magic_show("image/svg+xml"),
    "SVG": magic_show("image/svg+xml"),
    "javascript": magic_show("application/javascript"),
    "js": magic_show("application/javascript"),
}
for _name in ("bash", "sh", "perl", "ruby"):
    CELL_MAGICS[_name] = magic_script(_name)
for _name in ("python", "python3"):
    CELL_MAGICS[_name] = magic_script(sys.executable)


def outside_functions(tree):
    """The nodes of a cell but for the bodies of its functions, which run when they are called."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))


def names_of_asyncio(nodes):
    """What the nodes import of asyncio, and what earlier cells did: (names of the module, {name: what it is there})."""
    module = sys.modules.get("asyncio")
    modules = {name for name, value in list(main.items()) if module is not None and value is module}
    parts = {name: name for name in NEED_A_LOOP + RUN_A_LOOP if name in main and main[name] is getattr(module, name, None)}
    for node in nodes:
        if isinstance(node, ast.Import):
            modules.update(each.asname or each.name for each in node.names if each.name == "asyncio")
        elif isinstance(node, ast.ImportFrom) and node.module == "asyncio":
            parts.update((each.asname or each.name, each.name) for each in node.names)
    return modules, parts


def uses_running_loop(tree):
    nodes = list(outside_functions(tree))
    modules, parts = names_of_asyncio(nodes)
    used = {parts.get(node.id) for node in nodes if isinstance(node, ast.Name)}
    used.update(node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules)
    return any(name in used for name in NEED_A_LOOP) and not any(name in used for name in RUN_A_LOOP)


# Questions of an editor about code that does not run yet.

MATCHES = 200  # names that one completion offers
NAME_CHARACTERS = 200
BLOCK_ENDS = pattern(r"(return|pass|raise|break|continue)\b")
WORD_BEFORE = pattern(r"((?:[^\W\d]\w*\.)*)([^\W\d]\w*)?$")


def next_indent(lines):
    """The blanks that the next line of an incomplete cell begins with."""
    line = next((line for line in reversed(lines) if line.strip()), "")
    indent = line[: len(line) - len(line.lstrip())]
    text = line.partition("#")[0].strip()
    if text.endswith(":"):
        return indent + "    "
    return indent[:-4] if BLOCK_ENDS.match(text) else indent


def has_open_block(text, flags):
    """Whether the last statement is a block to which another line may be added."""
    body = tree_of(text, flags=flags).body
    return bool(body) and hasattr(body[-1], "body") and body[-1].end_lineno > body[-1].lineno


def with_whole_lines(code):
    """Without the blanks of an empty last line, with which an editor indents."""
    head, end, last = code.rpartition("\n")
    return code if last.strip() else head + end


def is_cell_magic(code):
    return code.lstrip().startswith("%%")


def completeness(code):
    """As at Python's own prompt: a block of several lines is complete when an empty line follows it."""
    import codeop

    code = with_whole_lines(code)
    if is_cell_magic(code):
        return {"status": "complete" if code.endswith("\n") else "incomplete"}
    compiler = codeop.CommandCompiler()
    compiler.compiler.flags |= TOP_LEVEL_AWAIT | futures
    try:
        text = with_magics(code)
        complete = compiler(text, "<input>", "exec") is not None
        if complete and not code.endswith("\n"):
            complete = not has_open_block(text, TOP_LEVEL_AWAIT | futures)
    except (SyntaxError, ValueError, OverflowError):
        return {"status": "invalid"}
    return {"status": "complete"} if complete else {"status": "incomplete", "indent": next_indent(code.split("\n"))}


def ipython_completeness(shell, code):
    code = with_whole_lines(code)
    if is_cell_magic(code):
        return completeness(code)
    status, indent = shell.input_transformer_manager.check_complete(code)
    return {"status": status, "indent": " " * (indent or 0)}


def names_for(owners, prefix):
    """What can stand for the word that begins so: names of the cells, or of the value before the last point."""
    if not owners:
        import keyword

        return set(main) | set(vars(builtins)) | set(keyword.kwlist)
    names = owners.split(".")[:-1]
    value = main[names[0]] if names[0] in main else getattr(builtins, names[0])
    for name in names[1:]:
        value = getattr(value, name)
    return dir(value)


def completion(code):
    found = WORD_BEFORE.search(code)
    owners, prefix = found.group(1), found.group(2) or ""
    if code[: found.start()].endswith(".") or not owners + prefix:
        return {}
    try:
        names = names_for(owners, prefix)
    except Exception:
        return {}
    fits = [name for name in names if isinstance(name, str) and name.startswith(prefix) and (prefix or not name.startswith("_"))]
    return {"replaces": prefix, "matches": [name[:NAME_CHARACTERS] for name in sorted(fits)[:MATCHES]]}


def ipython_completion(shell, code):
    line = code.rpartition("\n")[2]
    replaces, matches = shell.complete("", line, len(line))
    return {"replaces": replaces, "matches": [str(match)[:NAME_CHARACTERS] for match in sorted(set(matches))[:MATCHES]]}


def inspect(request):
    """Answers in any case: what a value's own code raises or forks is not an answer."""
    answer = {}
    ask = questions.get(request.get("what"))
    failure = guarded(lambda: answer.update(ask(request["code"]))) if ask else None
    if not channel.is_ours():
        end_child(failure)
    guarded(flush_all)
    try:
        channel.send(event="inspected", nonce=request["nonce"], **answer)
    except (ValueError, TypeError, RecursionError):
        channel.send(event="inspected", nonce=request["nonce"])


def in_ipython(question):
    """A question in IPython's words where the interpreter has it."""

    def ask(code):
        return (question if load_ipython() is None else questions[question.__name__])(code)

    return ask


for _question in (completeness, completion):
    questions.setdefault(_question.__name__, in_ipython(_question))


def load_ipython():
    """Returns IPython's shell, None if it is not usable. Cells run in it from now on, and the rest of this one shows values in it."""
    global ipython, run_in_shell
    with loading:
        if run_in_shell is not run_as_ipython or HOOKS.pop("IPython", None) is None:
            return ipython
        before, before_of_builtins, depth = dict(main), dict(vars(builtins)), sys.getrecursionlimit()
        modules = set(sys.modules)
        try:
            shell = make_ipython()
        except BaseException as error:
            forget_ipython(modules)
            main.clear()
            main.update(before)
            vars(builtins).update(before_of_builtins)
            HOOKS["IPython"] = hook_ipython
            if not isinstance(error, Exception):
                raise
            complain("IPython is not usable: %s: %s" % (name_of(error), said_by(error)))
            use_plain_shell()
            return None
        finally:
            sys.setrecursionlimit(depth)
        take_over(shell, before)
        ipython, run_in_shell = shell, lambda cell: run_in_ipython(shell, cell)
        return ipython


def forget_ipython(modules):
    """Its modules but these. An import that was interrupted leaves some, with which no later one works."""
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] == "IPython":
            sys.modules.pop(name, None)


def take_over(shell, before):
    """Gives IPython's shell what the cells before it have made; before: their names."""
    history.hand_over(shell)
    for name, ours in (("get_ipython", get_ipython), ("_dh", history.directories)):
        if before.get(name) is ours:
            before[name] = main[name]
    for name in set(main) - set(before):
        del main[name]
        shell.user_ns_hidden.pop(name, None)
        shell.builtin_trap.auto_builtins.pop(name, None)
    main.update(before)
    shell.compile.flags |= futures
    if current is not None:
        shell.execution_count = current.count
    if sys.displayhook is show_as_ipython:
        sys.displayhook = shell.displayhook


# IPython's shell.


def make_ipython():
    from IPython.core import displayhook, displaypub, formatters, interactiveshell
    from IPython.core.compilerop import CachingCompiler
    from traitlets import Type
    from traitlets.config import Config

    def check_return(self, answer, value):
        kinds = self._return_type if isinstance(self._return_type, tuple) else (self._return_type,)
        return checked(answer, self.print_method, value, kinds + (str,) if isinstance(self, formatters.JSONFormatter) else kinds)

    formatters.BaseFormatter._check_return = formatters.JSONFormatter._check_return = check_return

    class Formatter(formatters.DisplayFormatter):
        def format(self, value, include=None, exclude=None):
            forms, metadata = super().format(value, include=include, exclude=exclude)
            if forms or real_method(value, "_ipython_display_") is None:
                if "text/plain" not in forms and not (include and "text/plain" not in include):
                    forms["text/plain"] = text_of(value)
                add_special_forms(value, forms)
                forms = select(forms, include, exclude)
            return forms, metadata

    class Hook(displayhook.DisplayHook):
        def write_output_prompt(self):
            pass

        def write_format_data(self, format_dict, md_dict=None):
            send_forms(format_dict, main=True, ends=self.shell.ast_node_interactivity == "last_expr")

        def finish_displayhook(self):
            flush()
            self.is_active = False

    class Publisher(displaypub.DisplayPublisher):
        def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **_):
            send_forms(data, display_id=(transient or {}).get("display_id"), update=update)

        def clear_output(self, wait=False):
            clear_output(wait)

    class Compiler(CachingCompiler):
        def get_code_name(self, raw_code, transformed_code, number):
            return current.name

        def cache(self, transformed_code, number=0, raw_code=None):
            self._filename_map = getattr(self, "_filename_map", {})
            self._filename_map[current.name] = number
            return current.name

    class Shell(interactiveshell.InteractiveShell):
        displayhook_class = Type(Hook)
        display_pub_class = Type(Publisher)
        compiler_class = Type(Compiler)

        def init_display_formatter(self):
            self.display_formatter = Formatter(parent=self)
            self.configurables.append(self.display_formatter)

        def enable_gui(self, gui=None):
            pass

        # The driver reports errors. The shell tells them to run_cell's result, and some magics only here.
        def showtraceback(self, exc_tuple=None, *_, **__):
            error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
            names = sys._getframe(1).f_locals
            formatter, values = names.get("self"), names.get("args") or (None,)
            if not isinstance(formatter, formatters.BaseFormatter):
                current.told = error
            elif not isinstance(formatter, formatters.PlainTextFormatter):
                complain("%s of %s raised %s: %s" % (formatter.print_method, name_of(values[0]), name_of(error), said_by(error)))

        def should_run_async(self, raw_cell, **named):
            with warnings.catch_warnings():  # the real compilation warns
                warnings.simplefilter("ignore")
                text = named.get("transformed_cell") or raw_cell
                return super().should_run_async(raw_cell, **named) or (self.autoawait and needs_running_loop(text))

        def showsyntaxerror(self, *_, **__):
            pass

        def showindentationerror(self):
            pass

        def show_usage_error(self, exc):
            pass

        system = interactiveshell.InteractiveShell.system_raw

    interactiveshell.warn = lambda *_, **__: None  # "To exit: use 'exit'": SystemExit ends the cell here
    config = Config()
    config.HistoryManager.enabled = False
    config.Completer.use_jedi = False  # it takes seconds, and an answer is due within one
    config.InteractiveShell.autocall = 0
    config.InteractiveShell.banner1 = ""
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.ast_node_interactivity = "last_expr"
    config.InteractiveShell.separate_in = ""
    try:
        shell = Shell.instance(config=config, user_module=main_module, user_ns=main)
    except Exception:
        config.InteractiveShell.colors = "nocolor"  # from IPython 9 on
        Shell.clear_instance()
        shell = Shell.instance(config=config, user_module=main_module, user_ns=main)
    shell.loop_runner = run_coroutine
    shell.autoawait = True
    transforms = shell.input_transformer_manager.cleanup_transforms
    transforms[:] = [keep_numbers if getattr(transform, "__name__", "") == "leading_empty_lines" else transform for transform in transforms]
    shell.register_magic_function(lambda line: None, "line", "matplotlib")
    shell.set_hook("show_in_pager", lambda _self, data, start=0, screen_lines=0: print(data["text/plain"] if isinstance(data, dict) else data), 99)
    questions["completeness"] = lambda code: ipython_completeness(shell, code)
    questions["completion"] = lambda code: ipython_completion(shell, code)
    return shell


def keep_numbers(lines):
    """Instead of IPython's removal of leading empty lines, which changes the numbers of all others."""
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    return lines[first:] if lines and lines[first].startswith("%%") else lines


def source_in_ipython(shell, cell):
    try:
        text = shell.transform_cell(cell.code)
        return (cell.name, text, TOP_LEVEL_AWAIT) if parses(text) else None
    except Exception:
        return None


def run_in_ipython(shell, cell):
    if "\0" in cell.code:
        compile(cell.code, cell.name, "exec")  # raises; the shell would leave a coroutine behind
    prepare_loop()
    shell.execution_count = cell.count
    source = source_in_ipython(shell, cell)
    if source is not None:
        sources.append(source)  # before it runs: a process that it spawns has its functions
    result = shell.run_cell(cell.code, store_history=True)
    if source is not None and result.error_before_exec is not None:
        sources.remove(source)
        definitions["count"] = 0  # a file with it is stale
    failure = result.error_before_exec or result.error_in_exec or cell.told
    if failure is not None:
        raise failure


# An interpreter may be started ahead of its context. Programs of other contexts can change what the next start would find.


def found_now():
    """What a start finds in the places of modules: those places, .pth files, and files that shadow a module. By path, the file and
    when it changed last."""
    places = {place or "." for place in sys.path}
    site = sys.modules.get("site")
    if site is not None and site.ENABLE_USER_SITE:
        places.add(site.getusersitepackages())
    starts = {name.partition(".")[0] for name in sys.modules} | {"sitecustomize", "usercustomize", "IPython"}
    found = {}
    for place in places:
        try:
            about, names = os.stat(place), os.listdir(place)
        except OSError:  # not there, or an archive
            note_file(found, place)
            continue
        found[place] = (about.st_dev, about.st_ino, 0)
        for name in names:
            if name.endswith(".pth") or name.partition(".")[0] in starts:
                note_file(found, os.path.join(place, name))
            if name in ("sitecustomize", "usercustomize"):  # packages: any file of them may have changed
                found[place + "/" + name] = (0, 0, STARTED)
            elif name.endswith(".pth"):
                note_directories(found, place, name)
    for path in (sys.executable, os.path.join(sys.prefix, "pyvenv.cfg"), os.path.join(os.path.dirname(sys.executable), "pyvenv.cfg")):
        note_file(found, path)
    return found


def note_file(found, path):
    try:
        about = os.stat(path)
        found[path] = (about.st_dev, about.st_ino, about.st_ctime)
    except OSError:
        pass


def note_directories(found, place, name):
    """Those that a .pth file names: a start takes the ones that are there."""
    try:
        with open(os.path.join(place, name), errors="replace") as file:
            for line in file:
                directory = os.path.join(place, line.strip())
                if not line.startswith(("#", "import ", "import\t")):
                    found[directory + "/"] = (os.path.isdir(directory), 0, 0)
    except OSError:
        pass


def is_where(directory):
    """Whether the working directory is still what a start would begin in."""
    try:
        return os.path.samefile(directory, ".")
    except OSError:
        return False


def are_there(modules):
    """One that went away before the places were noted is in no note."""
    files = [getattr(module, "__file__", None) for module in modules]
    return all(os.path.exists(file) for file in files if file)


def is_unchanged(found):
    """Neither since they were noted nor while the interpreter started. The shell reads files of its own when it is loaded."""
    loaded_shell = os.environ.get("SBX_CELL_SHELL") == IPYTHON
    return (not loaded_shell and is_where(BEGAN_IN) and are_there(list(sys.modules.values())) and found == found_now()
            and max(changed for _, _, changed in found.values()) < STARTED)


OWN = globals()
MAIN_THREAD = _thread.get_ident()
STARTED = time.time() - 1
try:
    BEGAN_IN = os.getcwd()
except OSError:
    BEGAN_IN = ""  # is_where() then says no
shell_directory = None
for _part in parts_put_off:
    put_off(_part)
run_in_shell = None
text_form = text_of  # the text of a value
saved_builtins = {}
UNHEARD = 47  # a real-time signal, which nothing else uses
signal.signal(signal.SIGINT, ignore_interrupt)
signal.signal(UNHEARD, interrupt_unheard)
be_the_default_handler()
sys.unraisablehook = heed_ignored
channel = Channel()
NO_BYTES = b"\0\0\0\0"  # as ioctl tells how many a pipe holds
PIPES = {pipe_of(descriptor) for descriptor in (1, 2, channel.replies)} - {None}

# The module that cells are: pickle, dataclasses and multiprocessing look for it by name.
main_module = types.ModuleType("__main__")
main = main_module.__dict__
main["__builtins__"] = builtins
sys.modules["__main__"] = main_module
sys.argv = [""]
if "__file__" in OWN and sys.path and sys.path[0] == os.path.dirname(os.path.abspath(OWN["__file__"])):
    sys.path[0] = ""
os.environ.setdefault("MPLBACKEND", "Agg")
sys.meta_path.insert(0, Hooks)
builtins.exit, builtins.quit = Quit("exit"), Quit("quit")
# From a frame with other globals: up to Python 3.9 a called function shares the builtins of a caller with the same globals.
eval("start()", {"start": start, "__builtins__": __builtins__})
