# Mistakes are told in the user's own words, before the program is called.
library(tablesafe)

told <- function(expression) tryCatch({ expression; "" }, error = conditionMessage)
cells <- data.frame(region = c("Total", "north", "south"), value = c(3, 1, 2), secret = c(FALSE, TRUE, TRUE))

stopifnot(grepl("What is sensitive", told(ts_protect(cells, "region"))))
stopifnot(grepl("no column 'area'", told(ts_protect(cells, "area", secret_var = "secret"))))
stopifnot(grepl("twice", told(ts_protect(rbind(cells, cells), "region", secret_var = "secret"))))
gaps <- transform(cells, secret = c(NA, TRUE, TRUE))
stopifnot(grepl("gaps", told(ts_protect(gaps, "region", secret_var = "secret"))))
odd <- transform(cells, Status = c("V", "B", "x"))
stopifnot(grepl("status is A", told(ts_audit(odd, "region", secret_var = "secret"))))
stopifnot(grepl("no hierarchy file", told(ts_protect(cells, "region", c(region = "gone.hrc"), secret_var = "secret"))))
options(tablesafe.command = "no-such-program")
stopifnot(grepl("was not found", told(ts_version())))
