# The program: how it is called, in a private folder that is gone afterwards.

command <- function() getOption("tablesafe.command", "tablesafe")

call_program <- function(arguments, folder) {
  whole <- c(command(), arguments)
  said <- file.path(folder, "said.txt")
  wrong <- file.path(folder, "wrong.txt")
  before <- setwd(folder)
  libraries <- Sys.getenv("LD_LIBRARY_PATH", NA)
  Sys.unsetenv("LD_LIBRARY_PATH") # R's own libraries are not those that the program was built with
  on.exit({
    setwd(before)
    if (!is.na(libraries)) Sys.setenv(LD_LIBRARY_PATH = libraries)
  })
  code <- suppressWarnings(system2(whole[1], shQuote(whole[-1]), stdout = said, stderr = wrong))
  text <- function(path) {
    if (file.exists(path)) paste(readLines(path, warn = FALSE, encoding = "UTF-8"), collapse = "\n") else ""
  }
  if (code == 127L) {
    stop("The program ", sQuote(whole[1], FALSE), " was not found. Install it with 'pip install tablesafe', or say where ",
         "it is: options(tablesafe.command = \"...\").", call. = FALSE)
  }
  list(code = code, out = text(said), err = text(wrong))
}

answer_of <- function(done) {
  found <- tryCatch(fromJSON(done$out, simplifyVector = TRUE), error = function(e) NULL)
  if (!(done$code %in% c(0L, 1L)) || is.null(found)) {
    told <- if (is.list(found) && !is.null(found$error)) paste(unlist(found$error), collapse = "\n") else NULL
    stop(paste(c(told, if (is.null(told)) c(done$out, done$err)), collapse = "\n"), call. = FALSE)
  }
  found
}

ts_version <- function() {
  folder <- private_folder()
  on.exit(unlink(folder, recursive = TRUE))
  trimws(call_program("--version", folder)$out)
}

private_folder <- function() {
  folder <- tempfile("tablesafe-")
  dir.create(folder, mode = "0700")
  normalizePath(folder)
}
