// This file holds the text that people see from this package.

package server

const (
	textChannelConnected = "Whether the channel is connected."
	textHookFailed       = "A program that checks my tool calls has failed, so I won't use any tools until it's fixed: "
	textJobsRunning      = "Commands running in the background in this process."
	textServerReached    = "Whether the last attempt to reach the MCP server succeeded."
	textTooManyFiles     = "I only sent the first %[2]d of the %[1]d files."
	textNoWorkspace      = "I can't send files right now: I can't open the workspace."
	textNoSuchFile       = "I couldn't send the file %s: there's none by that name in the workspace."
	textFileNotSent      = "I couldn't send the file: %s."
	textFileNotCopied    = "I couldn't send the file %s: I can't copy it right now."
	textPageLink         = "To talk to the agent in a browser, open this link within %d seconds. It works once; `parley ui` gives you another one.\n\n  %s"
)
