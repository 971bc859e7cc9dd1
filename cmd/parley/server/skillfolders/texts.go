package skillfolders

// These texts tell the owners about proposed skills.
const (
	textProposed  = "The agent %s has proposed a skill for all conversations: %s.%s Look at it and accept it with `parley skills accept %s`."
	textStrangers = " Strangers may have written some of it."
)
