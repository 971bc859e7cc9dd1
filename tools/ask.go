package tools

// A Question is what a call asks people instead of doing something itself.
type Question struct {
	Text    string
	Choices []string // answers to choose from; people may also give another
}

// An Asker is a tool that asks people. Its calls do not run: the turn waits until somebody has
// answered, and the call's result is {"answer": "…"}.
type Asker interface {
	// Ask returns the question of a call. It returns false if the call asks nobody and should
	// run.
	Ask(call Call) (q Question, asks bool, err error)
}

// QuestionOf returns the question that a call of a tool asks people; false if it asks nobody.
func QuestionOf(t Tool, call Call) (q Question, asks bool, err error) {
	if a, ok := t.(Asker); ok {
		return a.Ask(call)
	}
	return Question{}, false, nil
}

// Asks is an option that makes a tool an Asker: question makes the question from a call's
// arguments.
func Asks[Args any](question func(args Args) (Question, error)) Option[Args] {
	return func(f *function[Args]) { f.question = question }
}

func (f *function[Args]) Ask(call Call) (Question, bool, error) {
	if f.question == nil {
		return Question{}, false, nil
	}
	args, err := f.decode(call.Args)
	if err != nil {
		return Question{}, true, err
	}
	q, err := f.question(args)
	return q, true, err
}
