package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"parley/tools/plainjson"
)

// Limits of a schema. Tools from outside, such as those of MCP servers, bring their own schemas,
// and a validator's time grows with the size and the depth.
const (
	maxSchemaBytes = 64 << 10
	maxSchemaDepth = 32
)

// maxProblems limits how many problems one error lists.
const maxProblems = 5

// A schema is a compiled JSON Schema together with the document that it was compiled from.
type schema struct {
	doc   map[string]any
	valid *jsonschema.Schema
}

// compileSchema compiles a JSON Schema; it refuses one that exceeds the limits.
func compileSchema(raw json.RawMessage) (*schema, error) {
	if len(raw) > maxSchemaBytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(raw), maxSchemaBytes)
	}
	value, err := parse(raw, maxSchemaDepth)
	if err != nil {
		return nil, err
	}
	doc, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an object")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(refusingLoader{})
	c.UseRegexpEngine(func(text string) (jsonschema.Regexp, error) {
		compiled, _, err := Pattern(text)
		return compiled, err
	})
	const here = "tool:schema"
	if err := c.AddResource(here, doc); err != nil {
		return nil, err
	}
	valid, err := c.Compile(here)
	if err != nil {
		return nil, err
	}
	return &schema{doc: doc, valid: valid}, nil
}

// CheckSchema returns why a schema from outside, such as an MCP server's, cannot be used; nil if it
// can.
func CheckSchema(raw json.RawMessage) error {
	_, err := compileSchema(raw)
	return err
}

// refusingLoader refuses to load the documents that a schema refers to.
type refusingLoader struct{}

func (refusingLoader) Load(string) (any, error) {
	return nil, errors.New("references to elsewhere are not followed")
}

// check parses, repairs and validates the arguments of a call. It returns them as JSON that matches
// the schema, with a note about what was repaired; the error tells the model what is wrong.
func (s *schema) check(raw json.RawMessage) (json.RawMessage, string, *Error) {
	value, notes, err := readArgs(raw)
	if err != nil {
		return nil, "", Errorf(InvalidArgs, "%v", err)
	}
	fit := fitter{notes: notes}
	object, ok := fit.fitValue(s.doc, value, "").(map[string]any)
	if !ok {
		return nil, "", Errorf(InvalidArgs, "the arguments must be one JSON object. %s", s.describeUsage())
	}
	if err := s.valid.Validate(object); err != nil {
		return nil, "", Errorf(InvalidArgs, "%s. %s", s.describeProblems(err), s.describeUsage())
	}
	args, err := plainjson.Marshal(object)
	if err != nil {
		return nil, "", Errorf(InvalidArgs, "the arguments cannot be written as JSON: %v", err)
	}
	return args, strings.Join(fit.notes, "; "), nil
}

// describeUsage returns a sentence that lists the tool's arguments.
func (s *schema) describeUsage() string {
	properties, _ := s.doc["properties"].(map[string]any)
	if len(properties) == 0 {
		return "It takes no arguments"
	}
	required := s.requiredNames()
	var parts []string
	for _, name := range sortedKeys(properties) {
		property, _ := properties[name].(map[string]any)
		about := strings.Join(typesOf(property), " or ")
		if slices.Contains(required, name) {
			about = strings.TrimPrefix(about+", required", ", ")
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", name, about))
	}
	return Clip("Arguments: "+strings.Join(parts, ", "), 1024)
}

// requiredNames returns the names of the required arguments.
func (s *schema) requiredNames() []string {
	var names []string
	list, _ := s.doc["required"].([]any)
	for _, item := range list {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// typesOf returns the types that a schema allows with its own keyword "type"; nil if it has none.
func typesOf(doc map[string]any) []string {
	switch t := doc["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var names []string
		for _, item := range t {
			if name, ok := item.(string); ok {
				names = append(names, name)
			}
		}
		return names
	}
	return nil
}

// describeProblems says why arguments don't match the schema.
func (s *schema) describeProblems(err error) string {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err.Error()
	}
	var said []string
	var visit func(*jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			said = append(said, s.describeProblem(e))
		}
		for _, cause := range e.Causes {
			visit(cause)
		}
	}
	visit(invalid)
	slices.Sort(said) // the validator iterates over maps
	if n := len(said) - maxProblems; n > 0 {
		said = append(said[:maxProblems], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(said, "; ")
}

// describeProblem says one reason why arguments don't match.
func (s *schema) describeProblem(e *jsonschema.ValidationError) string {
	where := "the arguments"
	if len(e.InstanceLocation) > 0 {
		where = fmt.Sprintf("%q", Clip(strings.Join(e.InstanceLocation, "."), 100))
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		if len(e.InstanceLocation) > 0 {
			return fmt.Sprintf("%s lacks %s", where, quoteNames(k.Missing))
		}
		return quoteNames(k.Missing) + " is missing"
	case *kind.AdditionalProperties:
		properties, _ := s.doc["properties"].(map[string]any)
		known := sortedKeys(properties)
		if len(e.InstanceLocation) > 0 {
			return fmt.Sprintf("%s has unknown names: %s", where, quoteNames(k.Properties))
		}
		slices.Sort(k.Properties)
		return unknownArgument(k.Properties[0], known)
	case *kind.Type:
		return fmt.Sprintf("%s must be %s, not %s", where, strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		return fmt.Sprintf("%s must be one of %s", where, joinValues(k.Want))
	}
	// The validator's own words begin with "at '/where': ".
	_, words, _ := strings.Cut(e.Error(), ": ")
	return Clip(where+": "+words, 300)
}

func quoteNames(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", Clip(name, 64))
	}
	return b.String()
}

// joinValues writes values as JSON, separated by commas.
func joinValues(values []any) string {
	var b bytes.Buffer
	for i, v := range values {
		raw, err := plainjson.Marshal(v)
		if err != nil {
			continue
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.Write(raw)
	}
	return Clip(b.String(), 500)
}
