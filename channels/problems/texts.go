// This file contains the texts from this package that people read.

package problems

const (
	textChannelDown   = "The channel `%s` has been down for %s. Nothing is lost: messages to it are waiting. `parley status` and the log say what's wrong."
	textChannelBack   = "The channel `%s` is back."
	textGivenUp       = "Messages I've given up on, for you to look at: %d. `parley dead-letters list` shows them and says why, and `parley dead-letters replay` tries them again."
	textNoneGivenUp   = "All the messages I'd given up on have been taken care of."
	textDiskFull      = "The disk that holds %s is nearly full: only %s of %s is free. Make room there: once it's full, I can't accept anything."
	textDiskHasRoom   = "The disk that holds %s has room again."
	textFolderFull    = "The folder of the conversation `%s` is nearly full: at %d MB (`[workspace] max_mb`) I can't write any more files there."
	textFolderHasRoom = "The folder of the conversation `%s` has room again."
	textToolsRefused  = "The server for the model `%s` doesn't accept some tools, so I'm working without them: `%s`%s. `parley doctor` says why."
)
