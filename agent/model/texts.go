// This file holds the text that people see from this package.

package model

const (
	textTooLong       = "The model's answer was too long, twice. Ask for less at a time."
	textCutOff        = "The model's answer was cut off twice while it was calling tools, so none of the calls were made. %s"
	textLittleToSumUp = "There isn't much to sum up: this conversation has only about %s tokens."
	textSummedUp      = "I've summed up the conversation so far: about %s tokens instead of %s. The latest messages are kept word for word; files and memory aren't affected."
	textContext       = "Right now I'm using about %s of the %s tokens that I can use:\n\n- my instructions: %s\n- my tools: %s\n- this conversation: %s\n\n"
	textNoMoney       = "there isn't enough left in the budget"
	textContextFuture = "As it gets longer, I drop old results and sum up what was said; %[1]scompact does that now, and %[1]snew starts over."
)
