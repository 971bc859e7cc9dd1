package main

// Files that are there when the conversation begins, with their contents.
func files() map[string]string {
	return map[string]string{
		"guests.txt": "Ann\nOlga\nKim\n",
		"menu.md":    "# Friday\n\n- soup\n- dumplings\n- plum cake\n",
	}
}

// A line is what a person types, and what is seen once it is answered.
type line struct{ typed, answer string }

// conversation returns what is said.
func conversation() []line {
	return []line{
		{"list the files, then read menu.md", "plum cake"},
		{"write Ann brings plums to notes.txt, then find plum", "notes.txt:1"},
		{"remember that I like tea", "emember"},
	}
}
