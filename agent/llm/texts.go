// This file holds the text that people see from this package.

package llm

// inWords describes the failure for people, and says what to check; remedy is "" if there is nothing specific
// to check.
func (e *Error) inWords() (what, remedy string) {
	what, remedy = "The model's server didn't answer the way it should", ""
	switch e.Cause {
	case CauseKey:
		what, remedy = "The model's provider doesn't accept the key", "Check model.api_key."
	case CauseModel:
		what, remedy = "The provider has no model by that name", "Check model.name."
	case CauseQuota:
		what, remedy = "The account at the model's provider has no credit left", "Check the account; the configuration is fine."
	case CausePlace:
		what, remedy = "The model's provider doesn't serve this machine's country or network", "The key isn't the problem. Point model.base_url at another provider, or at a server in a region that this provider serves."
	case CauseNetwork:
		what, remedy = "The model's server can't be reached", "Check model.base_url, whether the server is running, and whether the network lets this machine reach it."
	case CauseAddress:
		what, remedy = "There's no model server at that address", "Check model.base_url: it usually ends in /v1."
	default:
		switch e.Fault {
		case Refused:
			what, remedy = "The model's provider is refusing this bot's requests", "Check model.name, model.api_key and model.base_url."
		case Rejected:
			what = "The model's provider rejected this request"
		case Overflow:
			what = "The request is longer than the model can read"
		case Busy:
			if e.Status > 0 {
				what = "The model's provider is too busy, or failing"
			}
		}
	}
	return what, remedy
}
