// This file holds the text that people see from this package.

package owndata

const (
	textNothingSaid   = "There's nothing to send: I don't have anything you've said."
	textExport        = "This is what you've said to me and what I answered, with one line of JSON for each entry. Entries: %d, conversations: %d, your 👍 and 👎 on my answers: %d, schedules: %d. A conversation's files aren't included: ask me for them there."
	textExportOffers  = " Things I've proposed to remember: %d."
	textExportMemory  = " The last line is what I remember about you."
	textExportPart    = "Part of what you've said to me; there's more."
	textOnlyInPrivate = "%s%s only works in a private chat with me: say it there."
	textForgetUsage   = "Say `%[1]sforget` to see what would be erased, and `%[1]sforget yes` to erase it."
	textJustTold      = "I just told you what that erases. Say `%sforget yes` within 10 minutes to erase it."
	textForget        = "This erases what `%s` has said to me and what I answered:\n\n" +
		"- your own conversations, with their files and memory: %d\n- your part of conversations that you share with others: %d\n- anything waiting to be answered or sent, my questions to you, and your schedules\n- what I remember about you in all conversations, including on channels you've linked\n\n" +
		"It doesn't erase your permission to talk to me, message ids, backups, or what this platform keeps. You can't undo this. " +
		"To get a copy first, say `%sexport`.\n\nSay `%sforget yes` within 10 minutes to erase it."
	textForgetFirst = "Say `%[1]sforget` first to see what would be erased, then `%[1]sforget yes` within 10 minutes to erase it."
	textJustSent    = "I just sent it to you. I can send it again in 10 minutes."
	textErased      = "I've erased it.\n\n"
)
