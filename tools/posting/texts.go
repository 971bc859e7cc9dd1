// This file contains the texts from this package that people read.

package posting

const (
	textNoAnswer  = "no answer within %s"
	textHungUp    = "it closed the connection without an answer"
	textBadAnswer = "Parley got no answer that it can read"
	textNotHere   = "http:// is only for programs on this machine, and the host is another one: write https://"
)
