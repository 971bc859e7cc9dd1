// This file contains the texts from this package that people read.

package telegram

// menuEverywhere returns the commands that the menus of all chats show.
func menuEverywhere() []menuEntry {
	return []menuEntry{
		{"new", "Start a new conversation, but keep files and memory"},
		{"stop", "Stop what I'm doing"},
		{"status", "Show what I'm doing"},
		{"usage", "Show what you've used and what it cost"},
		{"undo", "Undo my last change in this conversation's folder"},
		{"context", "Show how much room is left in this conversation"},
		{"compact", "Sum up the conversation so far"},
		{"recall", "Find what was said earlier"},
		{"help", "List the commands I understand"},
	}
}

// menuInPrivate returns the commands about a person's own data.
func menuInPrivate() []menuEntry {
	return []menuEntry{
		{"export", "Get a copy of what you've said to me"},
		{"memory", "Show what I remember about you across conversations"},
		{"link", "Tell me who you are on another channel"},
		{"forget", "Erase what you've said to me"},
	}
}
