package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"parley/tools/plainjson"
)

// An Option gives a tool an ability that not every tool has.
type Option[Args any] func(*function[Args])

// Reconcile is an option that makes a tool a Reconciler: after a call was interrupted, look finds
// out whether it took effect.
func Reconcile[Args any](look func(ctx context.Context, call Call, args Args) (result any, done bool, err error)) Option[Args] {
	return func(f *function[Args]) { f.reconcile = look }
}

// EffectBy is an option that makes a tool an Effecter: effectOf returns what repeating a call would
// do, judging by the call's arguments. Calls whose arguments cannot be read have the effect in the
// Spec.
func EffectBy[Args any](effectOf func(args Args) Effect) Option[Args] {
	return func(f *function[Args]) { f.effect = effectOf }
}

// New makes a tool from a function. It derives the schema from the type of the function's
// arguments, a struct: fields with omitempty or omitzero are optional, the tag `jsonschema`
// describes a field, and the tag `enum` lists the strings that it may contain, separated by commas.
// The value that run returns becomes the result, as JSON. If the value is an Untrusted, the result
// is marked as possibly written by strangers. If it is a Typed, the result says which field of it
// has the main text. If it is a Shown, the model also sees the pictures.
// If it is a Fleeting, the model sees the value only in this turn. If it is an Enclosed, files go with
// the turn's answer. New panics if it cannot describe the type, because that is a programming error.
func New[Args any](spec Spec, run func(ctx context.Context, call Call, args Args) (any, error), opts ...Option[Args]) Tool {
	schema, names, err := schemaFor[Args]()
	if err != nil {
		panic(fmt.Sprintf("tools.New %s: %v", spec.Name, err))
	}
	spec.Schema = schema
	f := &function[Args]{spec: spec, names: names, run: run}
	for _, opt := range opts {
		opt(f)
	}
	return f
}

// A function is a tool made by New. It always has the methods of an Effecter, a Reconciler, an
// Asker and a TaskTool. Without the options, EffectOf returns the effect in the Spec, Reconcile
// returns an error, and Ask and TaskOf return false.
type function[Args any] struct {
	spec      Spec
	names     []string // the arguments' names, in the order of the fields
	run       func(context.Context, Call, Args) (any, error)
	reconcile func(context.Context, Call, Args) (any, bool, error)
	effect    func(Args) Effect

	question func(Args) (Question, error)
	task     func(Args) (Task, error)
}

func (f *function[Args]) Spec() Spec { return f.spec }

func (f *function[Args]) Run(ctx context.Context, call Call) (Result, error) {
	args, err := f.decode(call.Args)
	if err != nil {
		return Result{}, err
	}
	value, err := f.run(ctx, call, args)
	if err != nil {
		return Result{}, err
	}
	return f.encode(value)
}

func (f *function[Args]) EffectOf(call Call) Effect {
	if f.effect == nil {
		return f.spec.Effect
	}
	args, err := f.decode(call.Args)
	if err != nil {
		return f.spec.Effect
	}
	return f.effect(args)
}

func (f *function[Args]) Reconcile(ctx context.Context, call Call) (Result, bool, error) {
	if f.reconcile == nil {
		return Result{}, false, fmt.Errorf("reconcile %s: %w", f.spec.Name, errors.ErrUnsupported)
	}
	args, err := f.decode(call.Args)
	if err != nil {
		return Result{}, false, err
	}
	value, done, err := f.reconcile(ctx, call, args)
	if err != nil || !done {
		return Result{}, false, err
	}
	result, err := f.encode(value)
	return result, err == nil, err
}

// decode parses the arguments. It refuses unknown names again, because a tool may be run without a
// Set that has checked them, and encoding/json ignores the case of names.
func (f *function[Args]) decode(raw json.RawMessage) (Args, error) {
	var args Args
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return args, Errorf(InvalidArgs, "the arguments must be one JSON object")
	}
	for _, name := range sortedKeys(given) {
		if !slices.Contains(f.names, name) {
			return args, Errorf(InvalidArgs, "%s", unknownArgument(name, f.names))
		}
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return args, Errorf(InvalidArgs, "%q cannot be %s", wrong.Field, wrong.Value)
		}
		return args, Errorf(InvalidArgs, "the arguments cannot be read: %v", err)
	}
	return args, nil
}

// encode makes a Result from the value that the tool's function returned.
func (f *function[Args]) encode(value any) (Result, error) {
	foreign, untrusted := value.(Untrusted)
	if untrusted {
		value = foreign.Value
	}
	typed, is := value.(Typed)
	if is {
		value = typed.Value
	}
	enclosed, encloses := value.(Enclosed)
	if encloses {
		value = enclosed.Value
	}
	shown, shows := value.(Shown)
	if shows {
		value = shown.Value
	}
	var kept json.RawMessage
	if passing, ok := value.(Fleeting); ok {
		value = passing.Value
		var err error
		if kept, err = plainjson.Marshal(passing.StoredValue); err != nil {
			return Result{}, fmt.Errorf("encode what is kept of the result of %s: %w", f.spec.Name, err)
		}
	}
	raw, err := plainjson.Marshal(value)
	if err != nil {
		return Result{}, fmt.Errorf("encode the result of %s: %w", f.spec.Name, err)
	}
	return Result{Content: raw, Untrusted: untrusted, Pictures: shown.Pictures, StoredContent: kept, Field: typed.Field, MIME: typed.MIME, Enclosed: enclosed.Files}, nil
}

// schemaFor derives the schema of a struct and the names of its fields. The same struct always
// gives the same bytes.
func schemaFor[Args any]() (json.RawMessage, []string, error) {
	t := reflect.TypeFor[Args]()
	if t.Kind() != reflect.Struct {
		return nil, nil, fmt.Errorf("the arguments are a %s, not a struct", t)
	}
	schema, err := jsonschema.For[Args](nil)
	if err != nil {
		return nil, nil, err
	}
	if schema.Properties == nil {
		schema.Properties = map[string]*jsonschema.Schema{} // some providers refuse an object schema without properties
	}
	withoutNulls(schema)
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		property := schema.Properties[name]
		if list := field.Tag.Get("enum"); list != "" && property != nil {
			for value := range strings.SplitSeq(list, ",") {
				property.Enum = append(property.Enum, value)
			}
		}
	}
	raw, err := plainjson.Marshal(schema)
	if err != nil {
		return nil, nil, err
	}
	return raw, schema.PropertyOrder, nil
}

// withoutNulls removes "null" from the types in a schema, which the library adds for slices, maps
// and pointers. Models should omit an optional argument; if one sends a null instead, the fitter
// drops it.
func withoutNulls(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if rest := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" }); len(rest) == 1 {
		s.Type, s.Types = rest[0], nil
	}
	withoutNulls(s.Items)
	withoutNulls(s.AdditionalProperties)
	for _, property := range s.Properties {
		withoutNulls(property)
	}
}
