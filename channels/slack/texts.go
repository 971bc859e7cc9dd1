// This file contains the texts from this package that people read.

package slack

import "parley/channels/slack/assistant"

const (
	textAbout     = "Look at this message and tell me what it's about, and what I should know or do."
	textElsewhere = "I'm not in this conversation, so I'll answer in our own chat."
	textBotToken  = "Bot User OAuth Token"
)

// textSuggestions is shown above the suggested prompts.
const textSuggestions = "What would you like to do?"

// suggestedPrompts returns what the assistant pane suggests to everybody.
func suggestedPrompts() []assistant.Prompt {
	return []assistant.Prompt{
		{Title: "What can you do?", Message: "What can you do for me here, and what can't you do?"},
		{Title: "Help me write something", Message: "Help me with something I'm writing. First ask me for the draft, and who it's for."},
		{Title: "Look at a file", Message: "Which of our files do you have, and what's in them?"},
	}
}

// promptToWrite returns what the pane suggests to somebody who is looking at a channel.
func promptToWrite(channel string) assistant.Prompt {
	return assistant.Prompt{
		Title: "Write to #" + channel, Message: "Help me write a message for #" + channel + ". First ask me what it should say.",
	}
}
