// Package askuser provides the tool with which an agent asks a question of the person it works for.
package askuser

import (
	"context"
	"errors"
	"strings"

	"parley/tools"
)

// Limits of a question.
const (
	maxQuestion = 4000 // bytes
	maxChoices  = 8
	maxChoice   = 60 // bytes: as much as a button can show
)

type args struct {
	Question string   `json:"question" jsonschema:"what you want to know, whole: the person sees nothing else"`
	Choices  []string `json:"choices,omitempty" jsonschema:"short answers to choose from; another answer is possible"`
}

// New makes the tool ask_user.
func New() tools.Tool {
	return tools.New(tools.Spec{
		Name: "ask_user", Effect: tools.Idempotent, Touches: tools.TouchesNothing(),
		Description: "Ask the person for whom you work, and go on with their answer. It may take hours until they answer, so ask only what you cannot find out, and ask all at once.",
	}, run, tools.Asks(buildQuestion))
}

// run handles a call that was run, although it should have made the turn wait for a person's
// answer.
func run(context.Context, tools.Call, args) (any, error) {
	return nil, tools.Errorf(tools.PermissionDenied, "Nobody can be asked from here: end the turn with the question instead.")
}

// buildQuestion makes the question from a call's arguments, or returns an error that says what is
// wrong with them.
func buildQuestion(a args) (tools.Question, error) {
	q := tools.Question{Text: strings.TrimSpace(a.Question)}
	switch {
	case q.Text == "":
		return q, tools.Errorf(tools.InvalidArgs, "the question is empty: write what you want to know")
	case len(q.Text) > maxQuestion:
		return q, tools.Errorf(tools.InvalidArgs, "the question has %d bytes, at most %d are allowed: ask for less", len(q.Text), maxQuestion)
	case len(a.Choices) > maxChoices:
		return q, tools.Errorf(tools.InvalidArgs, "there are %d choices, at most %d are allowed", len(a.Choices), maxChoices)
	}
	for _, c := range a.Choices {
		c = strings.Join(strings.Fields(c), " ")
		if err := checkChoice(c); err != nil {
			return q, err
		}
		q.Choices = append(q.Choices, c)
	}
	return q, nil
}

func checkChoice(choice string) error {
	switch {
	case choice == "":
		return errors.New("a choice is empty")
	case len(choice) > maxChoice:
		return tools.Errorf(tools.InvalidArgs, "a choice has %d bytes, at most %d are allowed: put what it means into the question", len(choice), maxChoice)
	}
	return nil
}
