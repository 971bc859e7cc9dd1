// This file holds the text that models read from this package.

package nodes

const (
	textWhichTool = "name the node and the tool that are to be called"
	textNoNode    = "there is no node called %q that you may use: list them first"
	textNoError   = "the call failed, and the node did not say why"
	textNoUndo    = " What it changes there can't be undone."
	textNotThere  = "%q leads out of the folder on the node %s, or may: give a path relative to that folder"
)
