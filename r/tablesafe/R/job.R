# A data.frame, and what is said of it, as a job of the program: cells.csv, hierarchies, job.toml.

quoted <- function(text) vapply(text, function(each) as.character(toJSON(each, auto_unbox = TRUE)), "", USE.NAMES = FALSE)

listed <- function(text) paste0("[", paste(quoted(text), collapse = ", "), "]")

require_columns <- function(tabular, ...) {
  named <- unlist(list(...))
  lacking <- setdiff(named, names(tabular))
  if (length(lacking)) {
    stop("There is no column ", paste(sQuote(lacking, FALSE), collapse = ", "), " in the table; it has ",
         paste(sQuote(names(tabular), FALSE), collapse = ", "), ".", call. = FALSE)
  }
}

as_flag <- function(column, name) {
  if (is.logical(column) || all(column %in% c(0, 1, NA))) {
    if (anyNA(column)) stop("Column ", sQuote(name, FALSE), " has gaps: TRUE or FALSE for every cell.", call. = FALSE)
    return(as.integer(column))
  }
  stop("Column ", sQuote(name, FALSE), " must be TRUE or FALSE for every cell.", call. = FALSE)
}

codes_of <- function(tabular, explanatory_vars) {
  codes <- lapply(tabular[explanatory_vars], as.character)
  do.call(paste, c(unname(codes), sep = "\r"))
}

write_cells <- function(cells, path) {
  write.csv(cells, path, row.names = FALSE, na = "", fileEncoding = "UTF-8")
}

# The values as text, so that none is rounded on its way.
plain <- function(column) {
  if (!is.numeric(column)) return(column)
  text <- format(column, digits = 15, scientific = FALSE, trim = TRUE, nsmall = 0)
  text[is.na(column)] <- NA
  text
}

write_job <- function(folder, tabular, explanatory_vars, hrc, totcode, value, freq, secret_var, cost_var, ip,
                      contributions, method, missing_totals) {
  require_columns(tabular, explanatory_vars, value, freq, secret_var, cost_var, contributions)
  if (anyDuplicated(codes_of(tabular, explanatory_vars))) {
    stop("Some cells are in the table twice: each combination of ", paste(explanatory_vars, collapse = ", "),
         " must have one row.", call. = FALSE)
  }
  used <- unique(c(explanatory_vars, value, freq, secret_var, cost_var, contributions))
  cells <- as.data.frame(tabular)[used]
  cells[explanatory_vars] <- lapply(cells[explanatory_vars], as.character)
  if (!is.null(secret_var)) cells[[secret_var]] <- ifelse(as_flag(cells[[secret_var]], secret_var) == 1L, "u", "s")
  for (each in unique(c(value, freq, cost_var, contributions))) cells[[each]] <- plain(cells[[each]])
  write_cells(cells, file.path(folder, "cells.csv"))
  totals <- total_codes(totcode, explanatory_vars)
  lines <- c(
    "[source]", 'file = "cells.csv"', 'kind = "cells"', paste("missing_totals =", quoted(missing_totals)),
    if (!is.null(freq)) paste("count =", quoted(freq)),
    if (!is.null(secret_var)) c(paste("status =", quoted(secret_var)), 'scheme = "tauargus"'),
    if (!is.null(contributions)) paste("contributions =", listed(contributions))
  )
  for (each in explanatory_vars) {
    lines <- c(lines, paste0("[dimensions.", quoted(each), "]"), paste("total =", quoted(totals[[each]])),
               hierarchy_lines(folder, hrc, each))
  }
  lines <- c(lines, "[response]", paste("value =", quoted(value)), "[problem]",
             paste("manual_range =", format(as.numeric(ip))),
             if (!is.null(cost_var)) paste("cost =", quoted(cost_var)), method)
  path <- file.path(folder, "job.toml")
  writeLines(enc2utf8(lines), path, useBytes = TRUE)
  path
}

total_codes <- function(totcode, explanatory_vars) {
  if (is.null(names(totcode))) {
    return(with_names(rep_len(totcode, length(explanatory_vars)), explanatory_vars))
  }
  lacking <- setdiff(explanatory_vars, names(totcode))
  with_names(c(totcode, with_names(rep("Total", length(lacking)), lacking))[explanatory_vars], explanatory_vars)
}

with_names <- function(values, names) {
  names(values) <- names
  as.list(values)
}

hierarchy_lines <- function(folder, hrc, name) {
  given <- if (is.null(hrc) || !(name %in% names(hrc))) NULL else hrc[[name]]
  if (is.null(given)) return(NULL)
  if (is.data.frame(given)) {
    if (!all(c("parent", "child") %in% names(given))) {
      stop("The hierarchy of ", sQuote(name, FALSE), " needs the columns parent and child.", call. = FALSE)
    }
    file <- paste0("hierarchy-", match(name, names(hrc)), ".csv")
    write_cells(given[c("parent", "child")], file.path(folder, file))
    return(c(paste("hierarchy =", quoted(file)), 'kind = "pairs"'))
  }
  if (!file.exists(given)) stop("There is no hierarchy file ", sQuote(given, FALSE), ".", call. = FALSE)
  paste("hierarchy =", quoted(normalizePath(given, winslash = "/")))
}
