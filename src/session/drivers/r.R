# Driver of an R context: runs cells in one R that keeps its state. R 4.0 and later, base packages only.
#
# Started as  Rscript --vanilla FILE  with descriptor 3 for requests and 4 for replies. A message is its length in
# decimal digits, a line feed, and that many bytes of JSON.
#
# R can't make descriptors close-on-exec: system() closes them for its command, other ways to start programs don't.
# Visible values are printed as at R's prompt, except the last one, which is the cell's main result.
local({
  value_bytes <- 4 * 2^20 # larger values are named in left_out
  cell_bytes <- 8 * 2^20 # all values of one cell
  text_characters <- 128 * 2^10 # of an error's value and traceback
  table_rows <- 1000
  owner <- Sys.getpid()
  if (!l10n_info()[["UTF-8"]]) suppressWarnings(Sys.setlocale("LC_CTYPE", "C.UTF-8"))
  options(keep.source = TRUE, warn = 0, device = function(...) open_device())

  requests <- file("/proc/self/fd/3", "rb", raw = TRUE)
  replies <- file("/proc/self/fd/4", "wb", raw = TRUE)

  # JSON.

  valid <- function(x) {
    x <- enc2utf8(as.character(x))
    bad <- !validUTF8(x)
    if (any(bad)) x[bad] <- iconv(x[bad], "UTF-8", "UTF-8", sub = "\uFFFD")
    x
  }

  quoted <- function(x) {
    x <- valid(x)
    x <- gsub("\\", "\\\\", x, fixed = TRUE)
    x <- gsub("\"", "\\\"", x, fixed = TRUE)
    x <- gsub("\n", "\\n", x, fixed = TRUE)
    for (code in c(1:9, 11:31)) {
      control <- intToUtf8(code)
      if (any(grepl(control, x, fixed = TRUE))) x <- gsub(control, sprintf("\\u%04x", code), x, fixed = TRUE)
    }
    paste0("\"", x, "\"")
  }

  unescaped <- function(text) {
    for (pair in list(c("\\n", "\n"), c("\\t", "\t"), c("\\r", "\r"), c("\\b", "\b"), c("\\f", "\f"), c("\\/", "/")))
      text <- gsub(pair[1], pair[2], text, fixed = TRUE)
    repeat {
      at <- regexpr("\\\\u[0-9a-fA-F]{4}(\\\\u[dD][c-fC-F][0-9a-fA-F]{2})?", text)
      if (at < 0) break
      found <- regmatches(text, at)
      code <- strtoi(substr(found, 3, 6), 16L)
      if (code >= 0xD800 && code < 0xDC00 && nchar(found) == 12) {
        code <- 0x10000 + (code - 0xD800) * 1024 + strtoi(substr(found, 9, 12), 16L) - 0xDC00
      } else {
        found <- substr(found, 1, 6)
        if (code >= 0xD800 && code < 0xE000) code <- 0xFFFD
      }
      text <- gsub(found, if (code == 0) "" else intToUtf8(code), text, fixed = TRUE)
    }
    gsub("\001", "\\", gsub("\002", "\"", text, fixed = TRUE), fixed = TRUE)
  }

  # The fields of a flat object.
  parsed <- function(text) {
    text <- gsub("\\\\", "\001", text, fixed = TRUE)
    text <- gsub("\\\"", "\002", text, fixed = TRUE)
    parts <- regmatches(text, gregexpr("\"[^\"]*\"[ \t\r\n]*:[ \t\r\n]*(\"[^\"]*\"|[0-9]+)", text))[[1]]
    fields <- list()
    for (part in parts) {
      name <- sub("^\"([^\"]*)\".*$", "\\1", part)
      value <- sub("^\"[^\"]*\"[ \t\r\n]*:[ \t\r\n]*", "", part)
      fields[[name]] <- if (startsWith(value, "\"")) unescaped(substr(value, 2, nchar(value) - 1)) else as.numeric(value)
    }
    fields
  }

  alphabet <- c(LETTERS, letters, 0:9, "+", "/")
  base64 <- function(bytes) {
    pad <- (3 - length(bytes) %% 3) %% 3
    m <- matrix(as.integer(c(bytes, raw(pad))), 3)
    index <- rbind(m[1, ] %/% 4, (m[1, ] %% 4) * 16 + m[2, ] %/% 16, (m[2, ] %% 16) * 4 + m[3, ] %/% 64, m[3, ] %% 64)
    text <- alphabet[index + 1]
    if (pad > 0) text[length(text) - seq_len(pad) + 1] <- "="
    paste(text, collapse = "")
  }

  # Messages.

  send <- function(text) {
    if (Sys.getpid() != owner) return(invisible()) # a child of parallel
    body <- charToRaw(enc2utf8(text))
    suspendInterrupts({
      writeBin(c(charToRaw(paste0(length(body), "\n")), body), replies)
      flush(replies)
    })
  }

  receive <- function() {
    head <- raw()
    repeat {
      byte <- readBin(requests, "raw", 1)
      if (length(byte) == 0) return(NULL)
      if (byte == as.raw(10)) break
      head <- c(head, byte)
    }
    size <- as.numeric(rawToChar(head))
    body <- raw()
    while (length(body) < size) {
      more <- readBin(requests, "raw", size - length(body))
      if (length(more) == 0) return(NULL)
      body <- c(body, more)
    }
    text <- rawToChar(body)
    Encoding(text) <- "UTF-8"
    parsed(text)
  }

  nonce <- NULL
  count <- 0
  sent <- 0

  # `data` is a list of JSON texts by MIME type, `sizes` their sizes in bytes.
  send_result <- function(data, sizes, main, display = NULL) {
    kept <- character()
    left <- character()
    for (mime in names(data)) {
      if (sizes[[mime]] > value_bytes || sent + sizes[[mime]] > cell_bytes) {
        left <- c(left, sprintf("{\"mime\":%s,\"bytes\":%.0f}", quoted(mime), sizes[[mime]]))
      } else {
        sent <<- sent + sizes[[mime]] + 100 # an event is not free
        kept <- c(kept, paste0(quoted(mime), ":", data[[mime]]))
      }
    }
    if (length(kept) + length(left) == 0) return(invisible())
    send(paste0("{\"event\":\"result\",\"nonce\":\"", nonce, "\",\"main\":", if (main) "true" else "false", ",\"data\":{", paste(kept, collapse = ","), "}",
      if (length(left)) paste0(",\"left_out\":[", paste(left, collapse = ","), "]"),
      if (!is.null(display)) sprintf(",\"display\":\"%s\",\"update\":true", display), "}"))
  }

  cut_text <- function(text) {
    text <- valid(text)
    size <- nchar(text)
    if (size <= text_characters) return(text)
    half <- text_characters / 2
    sprintf("%s\n... %d characters left out ...\n%s", substr(text, 1, half), as.integer(size - 2 * half), substr(text, size - half + 1, size))
  }

  send_error <- function(name, value, trace, line, more = "") {
    send(paste0("{\"event\":\"error\",\"nonce\":\"", nonce, "\",\"name\":", quoted(name), ",\"value\":", quoted(cut_text(value)), ",\"traceback\":", quoted(cut_text(trace)),
      ",\"line\":", if (is.na(line)) "null" else as.integer(line), more, "}"))
  }

  # What is the cell's own, and gone after it: variables, and the directory in which it begins.

  former <- list()
  origin <- NULL

  # Why setwd() refused: R does not tell errno.
  errno_of <- function(path) {
    if (file.exists(path)) return(if (dir.exists(path)) 13L else 20L)
    above <- dirname(path)
    while (!file.exists(above) && above != dirname(above)) above <- dirname(above)
    if (dir.exists(above)) (if (file.access(above, 1) == 0) 2L else 13L) else 20L
  }

  # FALSE: there is no such directory, which has been told.
  enter <- function(request) {
    former <<- list()
    origin <<- NULL
    for (field in names(request)[startsWith(names(request), "env:")]) {
      name <- substring(field, 5)
      former[[name]] <<- Sys.getenv(name, unset = NA)
      do.call(Sys.setenv, stats::setNames(list(request[[field]]), name))
    }
    if (is.null(request$cwd)) return(TRUE)
    path <- path.expand(request$cwd)
    before <- getwd()
    if (is.null(before)) before <- "/" # its own is gone
    tryCatch({
      setwd(path)
      origin <<- before
      TRUE
    }, error = function(e) {
      send_error("Error", paste0("cannot change to '", path, "'"), "", NA, sprintf(",\"errno\":%d", errno_of(path)))
      FALSE
    })
  }

  leave <- function() {
    for (name in names(former)) {
      if (is.na(former[[name]])) Sys.unsetenv(name) else do.call(Sys.setenv, stats::setNames(list(former[[name]]), name))
    }
    former <<- list()
    if (!is.null(origin)) tryCatch(setwd(origin), error = function(e) cat("sbx: the cell's directory could not be left\n", file = stderr()))
    origin <<- NULL
  }

  send_done <- function(ok, more = "") {
    flush(stdout())
    flush(stderr())
    text <- sprintf("{\"event\":\"done\",\"nonce\":\"%s\",\"count\":%.0f,\"ok\":%s%s}", nonce, count, if (ok) "true" else "false", more)
    nonce <<- NULL
    send(text)
  }

  # Values.

  column <- function(x) {
    if (is.factor(x)) x <- as.character(x)
    if (is.logical(x)) return(ifelse(is.na(x), "null", ifelse(x, "true", "false")))
    if (is.numeric(x) && !is.object(x)) return(ifelse(is.finite(x), vapply(x, function(v) sprintf("%.15g", v), ""), "null"))
    if (is.list(x)) x <- vapply(x, function(v) paste(format(v), collapse = ", "), "")
    missing <- is.na(x)
    text <- quoted(if (is.object(x)) format(x) else x)
    text[missing] <- "null"
    text
  }

  table_of <- function(frame) {
    frame <- as.data.frame(frame)
    total <- nrow(frame)
    head <- frame[seq_len(min(total, table_rows)), , drop = FALSE]
    columns <- sprintf("{\"name\":%s,\"dtype\":%s}", quoted(names(head)), quoted(vapply(head, function(x) class(x)[1], "")))
    values <- lapply(head, column)
    if (.row_names_info(frame) > 0) {
      columns <- c("{\"name\":\"\",\"dtype\":\"character\",\"index\":true}", columns)
      values <- c(list(quoted(row.names(head))), values)
    }
    rows <- if (length(values) && nrow(head)) paste0("[", do.call(paste, c(unname(values), sep = ",")), "]") else character()
    sprintf("{\"columns\":[%s],\"rows\":[%s],\"total\":%d}", paste(if (length(values)) columns, collapse = ","), paste(rows, collapse = ","), total)
  }

  # Called from the global environment, where methods of cells are.
  print_value <- function(value) if (base::isS4(value)) methods::show(value) else base::print(value)
  environment(print_value) <- globalenv()

  show_value <- function(value) {
    text <- paste(utils::capture.output(print_value(value)), collapse = "\n")
    data <- list()
    sizes <- list()
    if (nzchar(text)) {
      text <- valid(text)
      data[["text/plain"]] <- quoted(text)
      sizes[["text/plain"]] <- nchar(text, "bytes")
    }
    if (is.data.frame(value)) {
      table <- tryCatch(table_of(value), error = function(e) NULL)
      if (!is.null(table)) {
        data[["application/vnd.sbx.table+json"]] <- table
        sizes[["application/vnd.sbx.table+json"]] <- nchar(table, "bytes")
      }
    }
    send_result(data, sizes, TRUE)
  }

  # Plots: a device opens when something is drawn, and closes with the cell. A picture is whole only then, but belongs where its
  # page began.

  pictures <- NULL
  pages <- 0
  begin_page <- function() {
    if (is.null(nonce) || (!is.null(device) && grDevices::dev.cur() != device)) return(invisible())
    pages <<- pages + 1
    flush(stdout())
    flush(stderr())
    if (Sys.getpid() != owner) return(invisible())
    # What is written next comes after the place: the answer says that it was read. No interrupt cuts it in two.
    suspendInterrupts({
      send(sprintf("{\"event\":\"place\",\"nonce\":\"%s\",\"display\":\"plot-%.0f-%d\"}", nonce, count, pages))
      receive()
    })
  }
  # par() opens a device where there is none, as the plot is about to.
  setHook("before.plot.new", function(...) if (graphics::par("page")) begin_page(), "append")
  setHook("before.grid.newpage", function(...) begin_page(), "append")
  device <- NULL
  open_device <- function() {
    pictures <<- tempfile("plot")
    grDevices::png(paste0(pictures, "-%03d.png"), width = 7, height = 7, units = "in", res = 96, type = if (capabilities("cairo")) "cairo" else getOption("bitmapType"))
    device <<- grDevices::dev.cur()
  }

  close_device <- function() {
    if (is.null(device)) return(invisible())
    if (device %in% grDevices::dev.list()) grDevices::dev.off(device)
    device <<- NULL
    page <- 0
    for (file in sort(Sys.glob(paste0(pictures, "-*.png")))) {
      page <- page + 1
      bytes <- readBin(file, "raw", file.size(file))
      unlink(file)
      text <- base64(bytes)
      send_result(list("image/png" = paste0("\"", text, "\"")), list("image/png" = nchar(text)), FALSE, if (page <= pages) sprintf("plot-%.0f-%d", count, page))
    }
  }

  # Running a cell.

  trim_call <- function(call) {
    text <- deparse(call, nlines = 2)
    if (length(text) > 1) paste(text[1], "...") else text
  }

  # The call to which a condition is attributed. R's prompt names none for code at the top, where it is the driver's own.
  own_call <- quote(eval(expressions[[position]], globalenv()))
  call_of <- function(condition) {
    call <- conditionCall(condition)
    if (identical(call, own_call)) NULL else call
  }

  # The line of a syntax error. R says that the end is missing on a line after the last one.
  parse_line <- function(text, code) {
    place <- regmatches(text, regexec("<cell [0-9]+>:([0-9]+):", text))[[1]]
    if (length(place) != 2) return(NA)
    last <- length(strsplit(sub("[ \t\r\n]+$", "", code), "\n", fixed = TRUE)[[1]])
    min(as.integer(place[2]), max(last, 1))
  }

  # The line of the innermost call that the cell's text contains.
  line_of <- function(calls, name, otherwise) {
    for (call in rev(calls)) {
      ref <- attr(call, "srcref")
      if (!is.null(ref) && identical(attr(ref, "srcfile")$filename, name)) return(ref[1])
    }
    otherwise
  }

  interrupted <- structure(class = c("sbx_interrupt", "condition"), list(message = "SIGINT ended the cell", call = NULL))

  run <- function(code) {
    name <- sprintf("<cell %.0f>", count)
    lines <- strsplit(paste0(code, "\n"), "\n", fixed = TRUE)[[1]]
    source <- srcfilecopy(name, if (length(lines)) lines else "")
    expressions <- tryCatch(parse(text = code, srcfile = source, keep.source = TRUE), error = identity)
    if (inherits(expressions, "error")) {
      text <- conditionMessage(expressions)
      send_error("ParseError", text, paste("Error:", text), parse_line(text, code))
      return(FALSE)
    }
    refs <- attr(expressions, "srcref")
    at <- 0
    base <- 0
    calls <- NULL
    step <- function(position) {
      at <<- position
      base <<- sys.nframe()
      answer <- withVisible(eval(expressions[[position]], globalenv())) # own_call has the same text
      if (!answer$visible) return(invisible())
      if (position == length(expressions)) show_value(answer$value) else print_value(answer$value)
    }
    failure <- tryCatch({
      withCallingHandlers(
        for (position in seq_along(expressions)) step(position),
        error = function(e) calls <<- sys.calls(),
        warning = function(w) {
          level <- getOption("warn")
          if (level >= 2) return()
          if (level >= 0) {
            call <- call_of(w)
            cat(if (is.null(call)) "Warning: " else paste0("Warning in ", trim_call(call), " : "), conditionMessage(w), "\n", sep = "", file = stderr())
          }
          tryInvokeRestart("muffleWarning")
        }
      )
      NULL
    }, error = identity, interrupt = function(i) interrupted)
    if (is.null(failure)) return(TRUE)
    otherwise <- if (at > 0 && length(refs) >= at) refs[[at]][1] else NA
    if (inherits(failure, "sbx_interrupt")) {
      send_error("Interrupt", conditionMessage(failure), "", otherwise)
      return(FALSE)
    }
    # Without the driver's calls before the cell's own, and those that handle the condition.
    own <- if (length(calls) > base) calls[-seq_len(base)] else list()
    keep <- vapply(own, function(call) !(is.name(call[[1]]) && as.character(call[[1]]) %in% c(".handleSimpleError", ".signalSimpleWarning", "h", "withVisible", "show_value", "print_value")), TRUE)
    drop <- which(vapply(own, function(call) identical(call[[1]], quote(eval)), TRUE))
    if (length(drop)) keep[seq_len(min(length(own), drop[min(2, length(drop))]))] <- FALSE
    keep <- keep & seq_along(own) <= length(own)
    shown <- vapply(own[keep], trim_call, "")
    call <- call_of(failure)
    head <- if (is.null(call)) paste0("Error: ", conditionMessage(failure)) else paste0("Error in ", trim_call(call), " : ", conditionMessage(failure))
    trace <- if (length(shown)) paste0(head, "\nCalls:\n", paste0("  ", shown, collapse = "\n")) else head
    send_error(class(failure)[1], conditionMessage(failure), trace, line_of(own, name, otherwise))
    FALSE
  }

  # Questions of an editor about code that does not run yet.

  matches <- 200 # names that one completion offers

  # Fields of an answer, each with a comma before it.
  completeness <- function(code) {
    problem <- tryCatch({
      parse(text = code, keep.source = FALSE)
      ""
    }, error = conditionMessage)
    status <- if (!nzchar(problem)) "complete" else if (grepl("unexpected (end of input|INCOMPLETE_STRING)", problem)) "incomplete" else "invalid"
    sprintf(",\"status\":\"%s\"", status)
  }

  # As R's own prompt completes.
  completion <- function(code) {
    line <- sub(".*\n", "", code)
    utils:::.assignLinebuffer(line)
    utils:::.assignEnd(nchar(line))
    token <- utils:::.guessTokenFromLine()
    utils:::.completeToken()
    names <- unique(utils:::.retrieveCompletions())
    names <- names[nzchar(names) & nchar(names) <= 200 & startsWith(names, token)]
    names <- utils::head(sort(names), matches)
    sprintf(",\"replaces\":%s,\"matches\":[%s]", quoted(token), if (length(names)) paste(quoted(names), collapse = ",") else "")
  }

  inspect <- function(request) {
    ask <- switch(request$what, completeness = completeness, completion = completion)
    answer <- tryCatch(allowInterrupts(ask(request$code)), error = function(e) "", interrupt = function(i) "")
    send(paste0("{\"event\":\"inspected\",\"nonce\":", quoted(request$nonce), paste(answer, collapse = ""), "}"))
  }

  # What would leave the context, take the channel along, or step through all cells to come.

  report_end <- function(status) {
    if (!is.null(nonce) && Sys.getpid() == owner) send_done(status == 0, sprintf(",\"exit\":%d,\"ended\":true", as.integer(status)))
  }
  set_base <- function(name, value) {
    unlockBinding(name, baseenv())
    assign(name, value, baseenv())
    lockBinding(name, baseenv())
  }
  replace_base <- function(name, make) {
    original <- get(name, baseenv())
    changed <- original
    body(changed) <- make(body(original))
    attr(changed, "srcref") <- NULL
    set_base(name, changed)
  }
  for (name in c("q", "quit")) replace_base(name, function(body) bquote({ .(report_end)(status); .(body) }))
  replace_base("system", function(body) bquote({
    if (is.character(command)) command <- paste0("exec 3<&- 4>&- 5<&- 6>&-; ", command)
    .(body)
  }))

  told_browser <- 0 # the cell that was told, so that a loop is told once
  set_base("browser", function(text = "", condition = NULL, expr = TRUE, skipCalls = 0L) {
    if (isTRUE(as.logical(expr)) && told_browser != count) {
      told_browser <<- count
      cat("sbx: browser() needs a terminal, so the code goes on\n", file = stderr())
    }
    invisible(NULL)
  })

  # The places of libraries, which a start keeps where they are directories, and the working directory: NULL once it is gone.
  found_by_start <- NULL
  found_now <- function() {
    named <- unlist(strsplit(Sys.getenv(c("R_LIBS", "R_LIBS_SITE", "R_LIBS_USER")), ":", fixed = TRUE))
    list(.libPaths(), named, dir.exists(path.expand(named)), getwd())
  }

  # A signal that came between cells, or just as one begins: the sender repeats it until the cell is done.
  absorb <- function() tryCatch(allowInterrupts(Sys.sleep(0)), interrupt = function(i) NULL)

  send(sprintf("{\"event\":\"ready\",\"language\":\"r\",\"version\":\"%s.%s\",\"shell\":\"plain\"}", R.version$major, R.version$minor))
  suspendInterrupts(repeat {
    request <- receive()
    absorb()
    if (is.null(request)) break
    if (identical(request$op, "ping")) send("{\"event\":\"pong\"}")
    # Started ahead of its context: that it waits shows nowhere, and what a start would find is compared.
    if (identical(request$op, "wait")) {
      found_by_start <- found_now()
      unlink(tempdir(), recursive = TRUE)
    }
    if (identical(request$op, "unchanged")) {
      tempdir(check = TRUE)
      send(sprintf("{\"event\":\"unchanged\",\"unchanged\":%s}", if (!is.null(getwd()) && identical(found_by_start, found_now())) "true" else "false"))
    }
    if (identical(request$op, "inspect")) inspect(request)
    if (!identical(request$op, "cell")) next
    nonce <- gsub("[^0-9A-Za-z]", "", request$nonce)
    count <- request$count
    sent <- 0
    pages <- 0
    ok <- enter(request) && tryCatch(allowInterrupts(run(request$code)), error = function(e) {
      send_error("Error", conditionMessage(e), conditionMessage(e), NA)
      FALSE
    }, interrupt = function(i) {
      send_error("Interrupt", "SIGINT ended the cell", "", NA)
      FALSE
    })
    while (sink.number() > 0) sink()
    tryCatch(close_device(), error = function(e) cat("sbx: the plot is lost: ", conditionMessage(e), "\n", sep = "", file = stderr()))
    leave()
    send_done(ok)
  })
}, envir = new.env(parent = baseenv()))
