// This file holds the text that people see from this package.

package server

const (
	textChannelConnected = "Whether the channel is connected."
	textHookFailed       = "A program that checks my tool calls has failed, so I won't use any tools until it's fixed: "
	textJobsRunning      = "Commands running in the background in this process."
	textServerReached    = "Whether the last attempt to reach the MCP server succeeded."
	textTooManyFiles     = "Of the %d files, only the first %d were sent."
	textNoFilesNow       = "I can't send files right now: %s."
	textNoWorkspace      = "I can't send files right now: the workspace won't open."
	textNoSuchFile       = "I couldn't send the file %s: there's none by that name in the workspace."
	textFileNotSent      = "I couldn't send the file: %s."
	textFileNotCopied    = "I couldn't send the file %s: it can't be copied right now."
	textPageLink         = "To talk to the agent in a browser, open this link within %d seconds. It works once; `parley ui` gives you another one.\n\n  %s"
)
