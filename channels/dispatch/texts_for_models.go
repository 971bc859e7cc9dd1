// This file contains the texts from this package that models read.

package dispatch

const (
	textFileLeftOut         = "The file %s of a message to %s was not delivered: %s."
	textMessageUndelivered  = "A message to %s was not delivered: %s."
	textToldOnBehalf        = "You have told this chat something on behalf of %s."
	textOperatorSaid        = "The operator of the bot has answered here in person, marked as such. It was not you who said this."
	textOperatorMayHaveSaid = "The operator of the bot has answered here in person, marked as such. It was not you who said this. It may not have arrived, or not all of it."
	textOperatorUndelivered = "The operator of the bot wanted to answer here in person, but the message to %s was not delivered, or not all of it: %s."
)
