// This file contains the texts from this package that people read.

package billing

const (
	textPrices  = "\nDays and months are in UTC. Prices are as of %s, except where a provider says what it charges."
	textNearCap = "Models have used %s of the %s that %s can spend %s (`%s`). Once that's used up, nobody gets an answer until %s UTC."
	textBounded = "You haven't set these limits on what models can cost, so defaults now apply: %s (days and months are in UTC). To change them, set %s in `[budget]`; `parley usage` shows what models have cost."
)
