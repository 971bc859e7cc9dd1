// This file holds the text that models read from this package.

package mqtt

const (
	textBash     = "Run a shell command on the device."
	textRead     = "Read a file of the device."
	textGitLog   = "List the newest commits of the device's repository."
	textGitDiff  = "Show the changes of a commit in the device's repository."
	textOther    = "Run the device's tool %s. It doesn't say which arguments it takes."
	textNoReason = "the device did not say why"
)
