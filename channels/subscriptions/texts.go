// This file contains the texts from this package that people read.

package subscriptions

const (
	textRedirect  = ", a redirect, which isn't followed"
	textNoAnswer  = "no answer within %s"
	textFailing   = "The subscription `%s` hasn't accepted any event since %s (%s). Events waiting: %d. I keep trying, and drop the oldest after 3 days or when 10,000 are waiting. `parley doctor` says more."
	textRecovered = "The subscription `%s` accepts events again."
	textDropped   = "Events that I dropped because the subscription `%s` hadn't accepted them: %d. The program behind it may have missed something."
)
