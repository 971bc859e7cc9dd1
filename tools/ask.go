package tools

// A Question is what a call asks people, instead of doing something itself.
type Question struct {
	Text    string
	Choices []string // answers to choose from; any other is one too
}

// An Asker is a tool that asks people. Its calls do not run: the turn waits until
// somebody has answered, and the result is {"answer": "…"}.
type Asker interface {
	// Ask gives the question of a call; false if the call asks nobody and runs.
	Ask(call Call) (q Question, asks bool, err error)
}

// AskOf is what a call of a tool asks people; false if it asks nobody.
func AskOf(t Tool, call Call) (q Question, asks bool, err error) {
	if a, ok := t.(Asker); ok {
		return a.Ask(call)
	}
	return Question{}, false, nil
}

// Asks makes an Asker of a tool: its calls ask people what of makes of the arguments.
func Asks[Args any](of func(args Args) (Question, error)) Option[Args] {
	return func(f *function[Args]) { f.question = of }
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
