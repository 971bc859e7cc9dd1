// This file holds the text that models read from this package.

package openai

// textBridge is put as a message of the model between a tool's result and a person's message if the server
// insists on one there.
const textBridge = "(I have read the results.)"

// textMissingTools is added to the instructions of a model that doesn't get the named tools.
func textMissingTools(names string) string {
	return "\n\nThe server of this model does not take these tools, so you do not have them now: " + names +
		". Where one of them is needed, say so, and that whoever runs the bot finds the reason with `parley doctor`."
}

// textNoTools is added to the instructions of a model that can't use tools.
const textNoTools = "\n\nThe server of this model takes no tools, so you have none now: you cannot read or write files, run commands, or look anything up. Where somebody asks for that, say that this model cannot use tools, and that whoever runs the bot can configure another."
