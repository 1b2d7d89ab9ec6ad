ts_audit <- function(tabular, explanatory_vars, hrc = NULL, totcode = "Total", value = "value", freq = NULL,
                     secret_var = NULL, suppressed_var = "Status", ip = 10, contributions = NULL, rules = NULL,
                     missing_totals = "error") {
  if (is.null(secret_var) && is.null(rules)) {
    stop("What is sensitive? Give secret_var, a column of TRUE and FALSE, or rules.", call. = FALSE)
  }
  require_columns(tabular, suppressed_var)
  folder <- private_folder()
  on.exit(unlink(folder, recursive = TRUE))
  write_job(folder, tabular, explanatory_vars, hrc, totcode, value, freq, secret_var, NULL, ip, contributions,
            rule_lines(rules), missing_totals)
  column <- tabular[[suppressed_var]]
  hidden <- if (is.character(column) || is.factor(column)) hidden_by_status(as.character(column))
            else as_flag(column, suppressed_var)
  pattern <- as.data.frame(tabular)[explanatory_vars]
  pattern[] <- lapply(pattern, as.character)
  pattern$withheld <- hidden
  write_cells(pattern, file.path(folder, "pattern.csv"))
  arguments <- c("audit", "job.toml", "--pattern", "pattern.csv", "--column", "withheld", "--scheme", "0/1", "--json")
  found <- answer_of(call_program(arguments, folder))
  structure(found, class = "ts_findings")
}

hidden_by_status <- function(status) {
  unknown <- setdiff(status, c("A", "B", "C", "D", "V"))
  if (length(unknown)) {
    stop("A status is A, B, C or D (withheld) or V (published), not ", paste(sQuote(unknown, FALSE), collapse = ", "),
         ".", call. = FALSE)
  }
  as.integer(status != "V")
}

print.ts_findings <- function(x, ...) {
  cat(if (isTRUE(x$safe)) "safe" else "NOT safe", "\n")
  invisible(x)
}
