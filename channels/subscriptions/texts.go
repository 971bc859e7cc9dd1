// This file contains the texts from this package that people read.

package subscriptions

const (
	textRedirect  = ": Parley doesn't follow redirects"
	textFailing   = "The subscription `%s` hasn't accepted any events since %s (%s). Events waiting: %d. I'll keep trying, but I'll drop events after 3 days, and the oldest ones once 10,000 are waiting. `parley doctor` has the details."
	textRecovered = "The subscription `%s` accepts events again."
	textDropped   = "Events that I dropped because the subscription `%s` hadn't accepted them: %d. The program behind it may have missed something."
)
