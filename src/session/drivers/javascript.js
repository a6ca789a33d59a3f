// Driver of a JavaScript context: runs cells in one Node.js that keeps its state. Node.js 18 and later.
//
// Started as  node -e TEXT  (or from a file) with descriptor 3 for requests and 4 for replies. A message is its length
// in decimal digits, a line feed, and that many bytes of JSON. Node.js makes both descriptors close-on-exec.
//
// SIGINT ends a cell: by vm's watchdog while code runs, by a handler while it waits. Node.js drops a signal that comes as
// the first changes to the second, so the sender repeats it until the cell is done.
//
// V8's inspector evaluates cells as a console does: top-level await, and const and let that can be declared again.
{
  const fs = require('fs');
  const inspector = require('inspector');
  const net = require('net');
  const path = require('path');
  const util = require('util');
  const vm = require('vm');
  const { createRequire, builtinModules } = require('module');
  const { pathToFileURL } = require('url');
  const { stringify, parse } = JSON;
  const { from: bufferFrom, byteLength, concat, alloc } = Buffer;
  const { writeSync } = fs;
  const inspect = util.inspect;
  const wait = Atomics.wait;
  const Failure = Error; // a cell can assign to the global one
  const soon = setImmediate; // and false timers replace this one

  const VALUE_BYTES = 4 << 20; // larger values are named in left_out
  const CELL_BYTES = 8 << 20; // all values of one cell
  const LEFT_OUT = 1000; // values of one cell that left_out names
  const TEXT_CHARACTERS = 128 << 10; // of an error's value and traceback
  const OWN = typeof __filename === 'string' && __filename !== '[eval]' ? __filename : '[eval]';
  const BUNDLE = Symbol.for('Jupyter.display'); // a method that gives {MIME type: value}, as in Deno

  // Through /proc the channel gets other numbers than 3 and 4, which a cell may close or write to.
  const moved = (number, flags) => {
    try {
      const other = fs.openSync(`/proc/self/fd/${number}`, flags);
      fs.closeSync(number);
      return other;
    } catch {
      return number;
    }
  };
  const replies = moved(4, 'w');
  const requests = moved(3, 'r');

  const send = (message) => {
    const body = bufferFrom(stringify(message));
    let rest = concat([bufferFrom(`${body.length}\n`), body]);
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(replies, rest));
      } catch (error) {
        if (error.code !== 'EAGAIN') process.reallyExit(1); // a cell closed the channel
        wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      }
    }
  };

  // Node.js writes to a pipe without blocking: what doesn't fit would come with a later cell, or get lost at an exit.
  const outputs = [process.stdout, process.stderr];
  const blockOutputs = () => {
    for (const stream of outputs) stream._handle?.setBlocking?.(true); // a file has no handle
  };

  let cell = null; // {nonce, count, code, sent, leftOut} of the cell that runs

  const cut = (text) => {
    if (text.length <= TEXT_CHARACTERS) return text;
    const half = TEXT_CHARACTERS / 2;
    return `${text.slice(0, half)}\n... ${text.length - 2 * half} characters left out ...\n${text.slice(-half)}`;
  };

  // Values and their forms.

  const textOf = (value) => {
    try {
      return withoutDriver(inspect(value, { maxStringLength: Infinity }));
    } catch (error) {
      return `<uninspectable value: ${said(error)}>`;
    }
  };

  const said = (error) => {
    try {
      return String(error);
    } catch {
      return 'an error without text';
    }
  };

  const isPlain = (value) => {
    if (value === null || typeof value !== 'object' || util.types.isProxy(value)) return false;
    const prototype = Object.getPrototypeOf(value);
    return prototype === null || prototype === Object.prototype || Array.isArray(value);
  };

  const formsOf = (value) => {
    const forms = {};
    try {
      const bundle = value !== null && typeof value === 'object' && !util.types.isProxy(value) ? value[BUNDLE] : undefined;
      if (typeof bundle === 'function') Object.assign(forms, bundle.call(value));
    } catch (error) {
      console.error(`sbx: the display method raised ${said(error)}`);
    }
    forms['text/plain'] ??= textOf(value);
    if (isPlain(value)) {
      try {
        const text = stringify(value);
        if (text !== undefined) forms['application/json'] ??= parse(text);
      } catch {
        // a circle, or a BigInt
      }
    }
    return forms;
  };

  const sendForms = (forms, main) => {
    if (cell === null) return; // a timer of an earlier cell
    const data = {};
    const leftOut = [];
    for (const [mime, form] of Object.entries(forms)) {
      const value = form instanceof Uint8Array ? bufferFrom(form).toString('base64') : form;
      const size = byteLength(typeof value === 'string' ? value : stringify(value) ?? '');
      if (value === undefined || value === null) continue;
      if (size > VALUE_BYTES || cell.sent + size > CELL_BYTES) {
        if (cell.leftOut++ < LEFT_OUT) leftOut.push({ mime, bytes: size });
      } else {
        cell.sent += size + 100; // an event is not free
        data[mime] = value;
      }
    }
    if (Object.keys(data).length === 0 && leftOut.length === 0) return;
    const message = { event: 'result', nonce: cell.nonce, main, data };
    if (leftOut.length > 0) message.left_out = leftOut;
    send(message);
  };

  // A cell that was interrupted while it waited goes on in the background: what it displays belongs to no later cell.
  const display = (...values) => {
    if (abandoned.size > 0 && isAbandoned(callingCell())) return;
    for (const value of values) sendForms(formsOf(value), false);
  };

  const abandoned = new Map(); // by the count of an interrupted cell, whether it was told that its values are dropped

  const isAbandoned = (count) => {
    if (abandoned.get(count) === false) {
      abandoned.set(count, true);
      console.error(`sbx: cell ${count} was interrupted, and what it displays now is dropped`);
    }
    return abandoned.has(count);
  };

  // The count of the cell at the bottom of V8's stack, which goes on from a function to the code that awaits it.
  // AsyncLocalStorage would know more, but adds properties to all promises before Node.js 24, which printing shows.
  const callingCell = () => {
    const limit = Failure.stackTraceLimit;
    Failure.stackTraceLimit = Infinity;
    const stack = String(new Failure().stack);
    Failure.stackTraceLimit = limit;
    const calls = [...stack.matchAll(/\bsbx-cell-(\d+):/g)];
    return calls.length > 0 ? Number(calls[calls.length - 1][1]) : undefined;
  };

  // Errors.

  // The cell's own name in stack frames, where a name has no blanks.
  const sourceName = (count) => `sbx-cell-${count}`;

  const isForeign = (line) =>
    /^\s+at /.test(line) && (line.includes(`${OWN}:`) || /\bnode:(inspector|vm|internal|events|net|diagnostics_channel)\b/.test(line) || /\bevalmachine\./.test(line));

  const named = (text) => text.replace(/sbx-cell-(\d+)/g, '<cell $1>');

  // Without the driver's frames in the stacks of a text of inspect(), at any depth. Only a stack has lines that begin so: a
  // string shows its line feeds as \n.
  const withoutDriver = (text) => {
    const lines = [];
    for (const line of text.split('\n')) {
      if (!isForeign(line)) lines[lines.length] = /^\s+at /.test(line) ? named(line) : line;
      else if (lines.length) lines[lines.length - 1] += /[^)\d]*$/.exec(line)[0]; // a brace or comma, after which the value goes on
    }
    return lines.join('\n');
  };

  const readable = (text) => named(withoutDriver(text));

  const sendError = (name, value, traceback, line, more) =>
    send({ event: 'error', nonce: cell.nonce, name, value: cut(value), traceback: cut(traceback), line, ...more });

  // What is the cell's own, and gone after it: variables, and the directory in which it begins.

  const chdir = process.chdir.bind(process);
  const cwd = process.cwd.bind(process);

  const enter = (request) => {
    const former = {};
    let origin = null;
    cell.leave = () => {
      for (const [name, value] of Object.entries(former)) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
      if (origin !== null) chdir(origin);
    };
    for (const [name, value] of Object.entries(request)) {
      if (!name.startsWith('env:')) continue;
      former[name.slice(4)] = process.env[name.slice(4)];
      process.env[name.slice(4)] = value;
    }
    if (!request.cwd) return;
    let before = '/'; // where its own is gone
    try {
      before = cwd();
    } catch {}
    chdir(/^~(?=$|[/])/.test(request.cwd) && process.env.HOME ? process.env.HOME + request.cwd.slice(1) : request.cwd);
    origin = before;
  };

  // The end of the code is where V8 finds that something is missing, though it names a line of the driver's after it.
  const placeIn = (code, details) => {
    const lines = code.trimEnd().split('\n');
    const last = lines.length - 1;
    if (details.lineNumber > last) return { line: last + 1, column: lines[last].length, text: lines[last] };
    return { line: details.lineNumber + 1, column: details.columnNumber, text: lines[details.lineNumber] };
  };

  const reportError = (error, details) => {
    let name = 'Error';
    let value = '';
    let traceback = '';
    let line = null;
    try {
      if (util.types.isNativeError(error) || error instanceof Error) {
        name = String(error.name ?? 'Error');
        value = String(error.message);
        const stack = typeof error.stack === 'string' ? error.stack : '';
        const found = stack.match(new RegExp(`\\b${sourceName(cell.count)}:(\\d+)`));
        line = found ? Number(found[1]) : null;
        traceback = readable(inspect(error));
        if (name === 'SyntaxError' && line === null && !stack.includes('sbx-cell-')) {
          const place = placeIn(cell.code, details);
          line = place.line;
          traceback = `<cell ${cell.count}>:${line}\n${place.text}\n${' '.repeat(place.column)}^\n${traceback}`;
        }
      } else {
        name = error === null ? 'null' : typeof error;
        value = textOf(error);
        traceback = `Uncaught ${value}`;
      }
    } catch (other) {
      traceback = `the error cannot be shown: ${said(other)}`;
    }
    sendError(name, value, traceback, line);
  };

  // import() and require() as from a file in the working directory.

  const here = () => createRequire(path.join(process.cwd(), 'cell.js'));

  // wanted: the names that an import statement takes from the module.
  const importModule = async (name, options, wanted = []) => {
    try {
      const found = await find(String(name), options);
      for (const each of wanted) {
        if (!(each in found)) throw new SyntaxError(`The requested module '${name}' does not provide an export named '${each}'`);
      }
      return found;
    } catch (error) {
      if (error?.code === 'ERR_MODULE_NOT_FOUND') {
        for (const part of ['message', 'stack']) error[part] = error[part].replace(/ imported from .*/, '');
      }
      throw error;
    }
  };

  const find = async (name, options) => {
    if (/^\.{0,2}\//.test(name)) return import(pathToFileURL(path.resolve(process.cwd(), name)).href, options);
    try {
      return await import(name, options);
    } catch (error) {
      if (error?.code !== 'ERR_MODULE_NOT_FOUND' || builtinModules.includes(name)) throw error;
      let found;
      try {
        found = here().resolve(name);
      } catch {
        throw error;
      }
      return import(pathToFileURL(found).href, options);
    }
  };

  // import d, { a as b } from "y" with { ... }: default name, name of all, the others, the module, the options.
  const STATEMENT = /import\s*(?:([\p{ID_Continue}$]+)(?:\s*,\s*|\s+))??(?:(?:\*\s*as\s+([\p{ID_Continue}$]+)|\{([^}]*)\})\s*)?(?<!import\s*)from\s*('[^'\n]*'|"[^"\n]*")(?:\s*(?:with|assert)\s*(\{[^}]*\}))?/uy;
  const BARE = /import\s*()()()('[^'\n]*'|"[^"\n]*")(?:\s*(?:with|assert)\s*(\{[^}]*\}))?/uy;

  // An import statement as declarations of the same names, on as many lines.
  const asDeclaration = (found) => {
    const [text, standard, all, list, module, attributes] = found;
    const pairs = (list ?? '').replace(/\/\/.*|\/\*[^]*?\*\//g, '').split(',').map((each) => each.trim().split(/\s+as\s+/)).filter(([name]) => name);
    if (standard) pairs.unshift(['default', standard]);
    const wanted = pairs.map(([name]) => (/^['"]/.test(name) ? name : `'${name}'`));
    const imported = `await __sbx_import__(${module}, ${attributes ? `{ with: ${attributes}, assert: ${attributes} }` : 'undefined'}, [${wanted}])`;
    const names = `{ ${pairs.map(([name, own]) => (own ? `${name}: ${own}` : name)).join(', ')} }`;
    const declared = all ? `const ${all} = ${imported}${standard ? `, ${names} = ${all}` : ''}` : pairs.length ? `const ${names} = ${imported}` : `void ${imported}`;
    return `${declared};${'\n'.repeat(text.split('\n').length - 1)}`;
  };

  // What another module would take is this cell's too: an export is its declaration, or its expression. From another module,
  // it is an import for its effect.
  const EXPORTS = [
    [/export\s+default\s+(?=(?:async\s+)?function\b\s*\*?\s*[\p{ID_Start}$_]|class\s+(?!extends\b)[\p{ID_Start}$_])/uy, () => ''],
    [/export\s+default\b/uy, () => ';({}).default ='],
    [/export\s+(?=(?:const|let|var|function|class|async)\b)/uy, () => ''],
    [/export\s*(?:\*(?:\s*as\s+(?:[\p{ID_Continue}$]+|'[^'\n]*'|"[^"\n]*"))?|\{[^}]*\})\s*from\s*('[^'\n]*'|"[^"\n]*")/uy, ([, module]) => `void await __sbx_import__(${module})`],
    [/export\s*\{[^}]*\}/uy, () => ''],
  ];
  const withoutExport = (code, at) => {
    for (const [form, instead] of EXPORTS) {
      form.lastIndex = at;
      const found = form.exec(code);
      if (!found) continue;
      const lines = found[0].split('\n').length - 1;
      return { end: form.lastIndex, text: lines ? instead(found) + '\n'.repeat(lines) : instead(found).padEnd(found[0].length) };
    }
    return null;
  };

  // Replaces the word in import(...), for which an evaluated script has no loader, and import and export statements.
  const withImports = (code) => {
    if (!/\b(?:im|ex)port\b/.test(code)) return code;
    const piece = /\/\/.*|\/\*[^]*?\*\/|'(?:\\[^]|[^'\\\n])*'|"(?:\\[^]|[^"\\\n])*"|[`{}]|\/|\b(?:im|ex)port(?![\w$])|[\w$.)\]]+|\S/g;
    const templates = []; // depth of braces in each template literal around
    let out = '';
    let at = 0;
    let previous = '';
    const template = () => {
      // Leaves piece.lastIndex after the literal's end or its next ${.
      const end = /\\[^]|`|\$\{/g;
      end.lastIndex = piece.lastIndex;
      for (let found; (found = end.exec(code)); ) {
        if (found[0][0] === '\\') continue;
        piece.lastIndex = end.lastIndex;
        if (found[0] === '${') templates.push(0);
        return;
      }
      piece.lastIndex = code.length;
    };
    for (let found; (found = piece.exec(code)); ) {
      const text = found[0];
      if (text.startsWith('//') || text.startsWith('/*')) continue;
      if (text === '`') template();
      else if (text === '{' && templates.length) templates[templates.length - 1]++;
      else if (text === '}' && templates.length && templates[templates.length - 1]-- === 0) {
        templates.pop();
        template();
      } else if (text === '/' && !/[\w$)\]}'"`]$/.test(previous)) {
        const regexp = /(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\//y;
        regexp.lastIndex = piece.lastIndex;
        if (regexp.test(code)) piece.lastIndex = regexp.lastIndex;
      } else if (text === 'import' && !previous.endsWith('.')) {
        const statement = [STATEMENT, BARE].map((form) => { form.lastIndex = found.index; return form.exec(code); }).find((each) => each);
        if (!statement && !/\s*\(/y.test(code.slice(piece.lastIndex))) continue;
        out += code.slice(at, found.index) + (statement ? asDeclaration(statement) : '__sbx_import__');
        if (statement) piece.lastIndex = found.index + statement[0].length;
        at = piece.lastIndex;
      } else if (text === 'export' && !/[.#]$/.test(previous)) {
        const export_ = withoutExport(code, found.index);
        if (!export_) continue;
        out += code.slice(at, found.index) + export_.text;
        at = piece.lastIndex = export_.end;
      }
      previous = text;
    }
    return out + code.slice(at);
  };

  // {a: 1} is an object here and not a block.
  const asExpression = (code) => {
    if (!/^\s*\{/.test(code) || /;\s*$/.test(code)) return code;
    try {
      new vm.Script(`(${code}\n)`);
      return `(${code}\n)`;
    } catch {
      return code;
    }
  };

  // Running a cell.

  const hand = { value: undefined, give(value) { hand.value = value; } };
  let handId;
  let session = null;
  const connect = () => {
    session?.disconnect();
    session = new inspector.Session();
    session.connect();
    globalThis.__sbx_hand__ = hand;
    session.post('Runtime.evaluate', { expression: '__sbx_hand__' }, (_, answer) => { handId = answer.result.objectId; });
    delete globalThis.__sbx_hand__;
  };
  connect();

  // The value itself behind what the inspector says about it.
  const valueOf = (remote) => {
    const argument = {};
    if (remote.objectId !== undefined) argument.objectId = remote.objectId;
    else if (remote.unserializableValue !== undefined) argument.unserializableValue = remote.unserializableValue;
    else if (remote.type === 'undefined') return undefined;
    else argument.value = remote.value;
    hand.value = undefined;
    session.post('Runtime.callFunctionOn', { functionDeclaration: 'function(value) { this.give(value); }', objectId: handId, arguments: [argument] }, () => {});
    const value = hand.value;
    hand.value = undefined;
    return value;
  };

  const finish = (ok, exit) => {
    const message = { event: 'done', nonce: cell.nonce, count: cell.count, ok };
    if (exit !== undefined) Object.assign(message, { exit, ended: true });
    try {
      cell.leave?.();
    } catch (error) {
      process.stderr.write(`sbx: the cell's directory could not be left: ${said(error)}\n`);
    }
    cell = null;
    send(message);
    next();
  };

  // A signal that the watchdog noticed too late stays counted and would end the next cell: it ends this loop instead.
  const spin = new vm.Script('for (const start = Date.now(); Date.now() - start < 50; );');
  const forgetSignals = () => {
    for (let left = 10; left > 0; left--) {
      try {
        spin.runInThisContext({ breakOnSigint: true });
        return;
      } catch {
        // one was counted; there may be others
      }
    }
  };

  let hasStale = false;
  const interrupted = () => {
    hasStale = true;
    abandoned.set(cell.count, false);
    connect(); // Node.js 22 aborts when V8 collects a promise that a session still awaits
    sendError('Interrupt', 'SIGINT ended the cell', '', null);
    finish(false);
  };

  // Not before Node.js has run what is queued for after this code: there it tells of rejected promises that nobody handles, and
  // what is printed once the cell is done is dropped.
  const finishSoon = (ok) => {
    const asked = cell;
    soon(() => {
      if (cell === asked) finish(ok); // else it was interrupted, or the next one runs
    });
  };

  const answered = (asked, failure, answer) => {
    if (cell !== asked) return; // it was interrupted
    if (failure) {
      if (failure.code === 'ERR_INSPECTOR_COMMAND') return; // the evaluation was interrupted; run() reports it
      reportError(new Error(failure.message), {});
      return finishSoon(false);
    }
    session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' }, () => {});
    if (answer.exceptionDetails) {
      reportError(valueOf(answer.exceptionDetails.exception ?? { type: 'undefined' }), answer.exceptionDetails);
      return finishSoon(false);
    }
    const value = valueOf(answer.result);
    if (value !== undefined) sendForms(formsOf(value), true);
    finishSoon(true);
  };

  let evaluate = () => {};
  Object.defineProperty(globalThis, '__sbx_run__', { value: () => evaluate(), configurable: false });
  const interruptible = new vm.Script('__sbx_run__()');

  const run = (request) => {
    if (hasStale) forgetSignals(); // now, because the sender goes on until the cell is done
    hasStale = false;
    blockOutputs(); // again for each cell, because programs of the last one could change the pipes, which they share
    const asked = (cell = { nonce: String(request.nonce), count: Number(request.count), code: String(request.code), sent: 0, leftOut: 0 });
    try {
      enter(request);
    } catch (error) {
      sendError(String(error?.code ?? 'Error'), said(error), '', null, { errno: -(error?.errno ?? 0) });
      return finish(false);
    }
    const expression = `${withImports(asExpression(asked.code))}\n//# sourceURL=${sourceName(asked.count)}`;
    evaluate = () =>
      session.post('Runtime.evaluate', { expression, replMode: true, awaitPromise: true, userGesture: true }, (failure, answer) => {
        // Not inside the inspector's own call: it holds V8 back from microtasks.
        outcome = [failure, answer];
        if (!inside) settle();
      });
    let outcome = null;
    let inside = true;
    const settle = () => {
      const [failure, answer] = outcome;
      try {
        answered(asked, failure, answer);
      } catch (error) {
        if (cell !== asked) return;
        sendError('Error', said(error), '', null);
        finish(false);
      }
    };
    try {
      interruptible.runInThisContext({ breakOnSigint: true });
    } catch (error) {
      if (error?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') return interrupted();
      sendError('Error', said(error), '', null);
      return finish(false);
    }
    inside = false;
    if (outcome !== null) settle();
  };

  // Questions of an editor about code that does not run yet.

  const MATCHES = 200; // names that one completion offers
  const NAME_CHARACTERS = 200;

  const compileError = (expression) => {
    let details = null;
    session.post('Runtime.discardConsoleEntries'); // or what cells logged is told once more
    session.post('Runtime.enable'); // only an enabled one compiles
    session.post('Runtime.compileScript', { expression, sourceURL: '', persistScript: false }, (_, answer) => { details = answer?.exceptionDetails ?? null; });
    session.post('Runtime.disable');
    return details;
  };

  // Errors about a missing end whose place is not the end.
  const MISSING = { 'missing ) after argument list': ')', 'Missing } in template expression': '}`' };

  // Of code whose `error` is at its end, or is none once the end is there, more is to come.
  const isCut = (code, error) => {
    if (code.includes('/*') && error(`${code}*/`) === null) return true;
    for (let text = code, left = 20; left > 0; left--) {
      const found = error(text);
      if (found === null || found.atEnd) return text !== code || found !== null;
      const missing = Object.keys(MISSING).find((words) => found.words.includes(words));
      if (missing === undefined) return false;
      text += `\n${MISSING[missing]}`;
    }
    return false;
  };

  const errorOf = (code) => {
    const details = compileError(code);
    if (details === null) return null;
    const lines = code.trimEnd().split('\n');
    const last = lines.length - 1;
    const atEnd = details.lineNumber > last || (details.lineNumber === last && details.columnNumber >= lines[last].length);
    return { atEnd, words: details.exception?.description ?? '' };
  };

  // V8 compiles no await outside of a function here. What is missing then shows in the line that closes the function.
  const errorInFunction = (code) => {
    const details = compileError(`async () => {\n${code}\n}`);
    if (details === null) return null;
    return { atEnd: details.lineNumber > code.split('\n').length, words: details.exception?.description ?? '' };
  };

  const completeness = (typed) => {
    const code = withImports(typed);
    let error = errorOf;
    // Without the closing line it compiles only where the code closes the function itself.
    if (error(code) !== null && /\bawait\b/.test(code) && compileError(`async () => {\n${code}`) !== null) error = errorInFunction;
    if (error(code) === null) return { status: 'complete' };
    if (!isCut(code, error)) return { status: 'invalid' };
    const last = code.trimEnd().split('\n').at(-1);
    return { status: 'incomplete', indent: /^\s*/.exec(last)[0] + (/[{([]$/.test(last) ? '  ' : '') };
  };

  const KEYWORDS = ['async', 'await', 'break', 'case', 'catch', 'class', 'const', 'continue', 'debugger', 'default', 'delete', 'do', 'else', 'extends', 'false', 'finally', 'for', 'function', 'if', 'import', 'instanceof', 'let', 'new', 'null', 'return', 'super', 'switch', 'this', 'throw', 'true', 'try', 'typeof', 'var', 'void', 'while', 'with', 'yield'];

  // Own names and those of the prototypes. A proxy would run code for its answer.
  const namesOf = (value) => {
    const names = new Set();
    for (let each = value ?? null, depth = 0; each !== null && depth < 20; each = Object.getPrototypeOf(each), depth++) {
      each = Object(each);
      if (util.types.isProxy(each)) break;
      for (const name of Object.getOwnPropertyNames(each)) names.add(name);
    }
    return names;
  };

  const completion = (code) => {
    const [, owners, prefix] = /((?:[\p{ID_Start}$_][\p{ID_Continue}$]*\.)*)((?:[\p{ID_Start}$_][\p{ID_Continue}$]*)?)$/u.exec(code);
    if (owners + prefix === '' || code.slice(0, code.length - owners.length - prefix.length).endsWith('.')) return {};
    let names = new Set();
    if (owners === '') {
      session.post('Runtime.globalLexicalScopeNames', {}, (_, answer) => { names = new Set(answer?.names ?? []); });
      for (const name of [...namesOf(globalThis), ...KEYWORDS]) names.add(name);
    } else {
      // No getter runs: it could do anything.
      let answer = null;
      session.post('Runtime.evaluate', { expression: owners.slice(0, -1), throwOnSideEffect: true, timeout: 500, silent: true, objectGroup: 'cell' }, (_, said) => { answer = said; });
      if (answer && !answer.exceptionDetails) names = namesOf(valueOf(answer.result));
      session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' }, () => {});
    }
    const fits = [...names].filter((name) => name.startsWith(prefix) && /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name) && !name.startsWith('__sbx'));
    return { replaces: prefix, matches: fits.sort().slice(0, MATCHES).map((name) => name.slice(0, NAME_CHARACTERS)) };
  };

  const inspectCode = (request) => {
    let answer = {};
    if (hasStale) forgetSignals();
    hasStale = false;
    evaluate = () => {
      answer = { completeness, completion }[request.what]?.(String(request.code)) ?? {};
    };
    try {
      interruptible.runInThisContext({ breakOnSigint: true });
    } catch (error) {
      hasStale = error?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED';
    }
    send({ event: 'inspected', nonce: String(request.nonce), ...answer });
  };

  // Messages.

  let unread = alloc(0);
  const socket = new net.Socket({ fd: requests, readable: true, writable: false });
  const waiting = [];

  const next = () => {
    if (cell === null && waiting.length > 0) soon(take);
  };

  const about = (name) => {
    try {
      const { dev, ino } = fs.statSync(name, { bigint: true });
      return `${dev} ${ino}`;
    } catch {
      return undefined;
    }
  };
  const beganIn = (() => {
    try {
      return process.cwd();
    } catch {
      return '';
    }
  })();

  // Whether a start would find the same: NODE_OPTIONS may name files, and the working directory may be another one by now.
  const isUnchanged = () => !process.env.NODE_OPTIONS && about(beganIn) !== undefined && about(beganIn) === about('.');

  const take = () => {
    if (cell !== null || waiting.length === 0) return;
    const request = waiting.shift();
    if (request.op === 'cell') run(request);
    else if (request.op === 'inspect') inspectCode(request);
    else if (request.op === 'ping') send({ event: 'pong' });
    else if (request.op === 'unchanged') send({ event: 'unchanged', unchanged: isUnchanged() });
    next();
  };

  socket.on('data', (chunk) => {
    unread = unread.length ? concat([unread, chunk]) : chunk;
    for (;;) {
      const end = unread.indexOf(10);
      if (end < 0) break;
      const size = Number(unread.subarray(0, end).toString('latin1'));
      if (unread.length < end + 1 + size) break;
      waiting[waiting.length] = parse(unread.subarray(end + 1, end + 1 + size).toString('utf8'));
      unread = unread.subarray(end + 1 + size);
    }
    next();
  });
  socket.on('end', () => process.exit(0));
  socket.on('error', () => process.reallyExit(1));

  // What would end Node.js, or end it silently.

  process.on('SIGINT', () => {
    if (cell !== null) interrupted();
  });
  const complain = (kind) => (error) => {
    try {
      process.stderr.write(`Uncaught ${kind}${util.types.isNativeError(error) ? readable(inspect(error)) : textOf(error)}\n`);
    } catch {
      process.stderr.write('Uncaught error\n');
    }
  };
  process.on('uncaughtException', complain(''));
  process.on('unhandledRejection', complain('(in promise) '));
  process.on('exit', (code) => {
    if (cell !== null) finish(code === 0, code);
  });

  // What a cell finds besides the language: the names of a module, and display.
  const define = (name, descriptor) => Object.defineProperty(globalThis, name, { configurable: true, enumerable: false, ...descriptor });
  let required = { directory: null, require: null };
  const setter = (name) => function (value) { define(name, { value, writable: true }); };
  define('require', {
    get() {
      const directory = process.cwd();
      if (required.directory !== directory) required = { directory, require: here() };
      return required.require;
    },
    set: setter('require'),
  });
  const own = { exports: {} };
  define('module', { value: own, writable: true });
  define('exports', { value: own.exports, writable: true });
  define('__sbx_import__', { value: importModule });
  define('display', { value: display, writable: true });
  for (const name of ['__filename', '__dirname']) delete globalThis[name];
  process.argv = [process.argv[0]];

  send({ event: 'ready', language: 'javascript', version: process.versions.node, shell: 'plain' });
}
