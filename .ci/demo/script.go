package main

// files returns the files that exist when the conversation begins: their contents by name.
func files() map[string]string {
	return map[string]string{
		"guests.txt": "Ann\nOlga\nKim\n",
		"menu.md":    "# Friday\n\n- soup\n- dumplings\n- plum cake\n",
	}
}

// A line is what a person types, and a text that the terminal shows once it is answered.
type line struct{ typed, answer string }

// conversation returns the lines that are typed, in order.
func conversation() []line {
	return []line{
		{"list the files, then read menu.md", "plum cake"},
		{"write Ann brings plums to notes.txt, then find plum", "notes.txt:1"},
		{"remember that I like tea", "emember"},
	}
}
