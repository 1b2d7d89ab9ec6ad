ts_protect <- function(tabular, explanatory_vars, hrc = NULL, totcode = "Total", value = "value", freq = NULL,
                       secret_var = NULL, cost_var = NULL, ip = 10, contributions = NULL, rules = NULL,
                       time_limit = NULL, missing_totals = "error") {
  if (is.null(secret_var) && is.null(rules)) {
    stop("What is sensitive? Give secret_var, a column of TRUE and FALSE, or rules.", call. = FALSE)
  }
  folder <- private_folder()
  on.exit(unlink(folder, recursive = TRUE))
  method <- c(
    rule_lines(rules),
    "[method]", 'name = "suppress"', if (!is.null(time_limit)) paste("time_limit_s =", format(as.numeric(time_limit))),
    "[output]", 'release = ["safe.csv"]', 'internal = "internal"', "guard_formulas = false"
  )
  write_job(folder, tabular, explanatory_vars, hrc, totcode, value, freq, secret_var, cost_var, ip, contributions,
            method, missing_totals)
  done <- call_program(c("run", "job.toml", "--json"), folder)
  facts <- answer_of(done)
  if (!file.exists(file.path(folder, "safe.csv"))) {
    stop("No safe table was found:\n", done$out, call. = FALSE)
  }
  release <- read.csv(file.path(folder, "safe.csv"), colClasses = "character", check.names = FALSE,
                      fileEncoding = "UTF-8", na.strings = character())
  row <- match(codes_of(tabular, explanatory_vars), codes_of(release, explanatory_vars))
  if (anyNA(row)) stop("The release lacks cells of the table: this is an error of the program.", call. = FALSE)
  withheld <- !nzchar(release[[value]][row])
  found <- as.data.frame(tabular)
  primary <- if (is.null(secret_var)) rep(FALSE, nrow(found)) else as_flag(found[[secret_var]], secret_var) == 1L
  found$Status <- ifelse(!withheld, "V", ifelse(primary, "B", "D"))
  attr(found, "safe") <- identical(facts$status, "safe")
  attr(found, "facts") <- facts
  found
}

rule_lines <- function(rules) {
  unlist(lapply(rules, function(rule) {
    options <- rule[setdiff(names(rule), "rule")]
    c("[[rules]]", paste("rule =", quoted(rule$rule)),
      vapply(names(options), function(name) paste(name, "=", as.character(toJSON(options[[name]], auto_unbox = TRUE))), ""))
  }))
}
