package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"parley/tools"
)

// repeatArgs are the arguments of the tool below. Their schema is derived from the type.
type repeatArgs struct {
	Word  string `json:"word" jsonschema:"what to say"`
	Times int    `json:"times,omitempty" jsonschema:"how often; once if left out"`
}

// A tool is a spec and a function. The schema of its arguments comes from their type, and a set
// repairs and checks what a model wrote before the tool runs.
func ExampleNew() {
	repeat := tools.New(
		tools.Spec{Name: "repeat", Description: "Says a word again and again.", Effect: tools.Pure, Touches: tools.TouchesNothing()},
		func(_ context.Context, _ tools.Call, args repeatArgs) (any, error) {
			if args.Times > 3 {
				return nil, tools.Errorf(tools.InvalidArgs, "nobody wants to hear that %d times", args.Times)
			}
			return map[string]string{"said": strings.Repeat(args.Word, max(args.Times, 1))}, nil
		})
	set := tools.NewSet(repeat)

	for _, written := range []string{`{"word": "ho", "times": "3"}`, `{"times": 2}`, `{"word": "ho", "times": 9}`} {
		call := tools.Call{ID: "c1", Name: "repeat", Args: json.RawMessage(written), Attempt: 1}
		args, note, refused := set.Check(call)
		if refused != nil {
			fmt.Println(refused.Code)
			continue
		}
		call.Args = args
		result, err := repeat.Run(context.Background(), call)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s (%s)\n", result.Content, note)
	}
	// Output:
	// {"said":"hohoho"} ("times" was string and is read as number)
	// invalid_args
	// invalid_args: nobody wants to hear that 9 times
}
