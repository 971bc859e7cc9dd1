package migrate

// A Progress says how far a migration is.
type Progress struct {
	Step Step
	Done int64 // how many rows or messages of the step were copied, plus how many were compared
	Of   int64 // how many there are to copy, plus how many to compare
}

// A Step is a step of a migration.
type Step string

// These are the steps, in their order.
const (
	Logs Step = "logs"
	Book Step = "book"
	Post Step = "messages" // the messages in the bus
)

// Steps returns all steps in their order.
func Steps() []Step { return []Step{Logs, Book, Post} }

// progressOf returns a function that reports the progress within a step.
func (m *migration) progressOf(step Step) func(done, of int64) {
	return func(done, of int64) {
		if m.Progress != nil {
			m.Progress(Progress{step, done, of})
		}
	}
}
