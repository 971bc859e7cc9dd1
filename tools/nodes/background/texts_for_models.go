package background

// What models read about jobs that can't be run.
const (
	textNoID      = "the job has no id"
	textNoCommand = "the command is empty, has a NUL byte, or has more than %d bytes: write a long one to a file and run that"
)
