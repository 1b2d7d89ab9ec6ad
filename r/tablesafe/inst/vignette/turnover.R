# Turnover by activity and region: from a table with flags to one that may be published.
library(tablesafe)

inner <- expand.grid(activity = c("a1", "a2", "b1", "b2"), region = c("north", "south", "west"),
                     stringsAsFactors = FALSE)
inner$turnover <- c(120, 80, 40, 65, 15, 90, 210, 33, 70, 8, 55, 140)
inner$firms <- c(9, 7, 5, 6, 1, 8, 12, 4, 6, 2, 5, 11)
sections <- transform(inner, activity = substr(activity, 1, 1))
everything <- rbind(inner, sections, transform(inner, activity = "Total"))
cells <- aggregate(cbind(turnover, firms) ~ activity + region, rbind(everything, transform(everything, region = "Total")),
                   sum)

# Fewer than three firms: sensitive, unless we knew better.
cells$is_secret <- cells$firms < 3
activities <- data.frame(parent = c("Total", "Total", "a", "a", "b", "b"), child = c("a", "b", "a1", "a2", "b1", "b2"))

# Withholding these alone is not enough: the totals give them away.
alone <- ts_audit(cells, c("activity", "region"), hrc = list(activity = activities), value = "turnover", freq = "firms",
                  secret_var = "is_secret", suppressed_var = "is_secret")
print(alone)
stopifnot(!alone$safe)

# With complementary cells it is.
safe <- ts_protect(cells, c("activity", "region"), hrc = list(activity = activities), value = "turnover", freq = "firms",
                   secret_var = "is_secret")
print(table(safe$Status))
stopifnot(attr(safe, "safe"), all(safe$Status[cells$is_secret] == "B"), sum(safe$Status == "D") >= 2)

# The pattern, attacked as anybody's: it holds.
again <- ts_audit(safe, c("activity", "region"), hrc = list(activity = activities), value = "turnover", freq = "firms",
                  secret_var = "is_secret")
print(again)
stopifnot(again$safe)

# What may be published.
published <- transform(safe, turnover = ifelse(Status == "V", turnover, NA))[c("activity", "region", "turnover")]
print(published)
