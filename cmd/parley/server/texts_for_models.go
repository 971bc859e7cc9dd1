// This file holds the text that models read from this package.

package server

func textKnowledge(folder, names string) string {
	return "The operator keeps a folder for you, which nobody changes: " + folder + "/. Look there, with grep, list_directory and read_file, before you answer what it may be about. It has:\n- " + names
}
