package tools

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A Set holds the tools that an agent has. It is immutable, so several goroutines may use it at once.
type Set struct {
	tools map[string]*member
	specs []Spec // sorted by name
	// withoutCache has the results of Without, by the names of the tools that were left out. Thousands of turns share
	// them.
	withoutCache sync.Map // from string to *Set
}

// A member is a tool of a Set with its schema. The schema is compiled when it is first needed, so that the program
// starts quickly.
type member struct {
	tool   Tool
	spec   Spec
	schema func() (*schema, error)
}

// NewSet makes a set of tools. A later tool replaces an earlier one with the same name.
func NewSet(tools ...Tool) *Set {
	members := make(map[string]*member, len(tools))
	for _, t := range tools {
		spec := t.Spec()
		members[spec.Name] = &member{
			tool:   t,
			spec:   spec,
			schema: sync.OnceValues(func() (*schema, error) { return compileSchema(spec.Schema) }),
		}
	}
	return newSet(members)
}

// With returns a copy of the set with more tools. An added tool replaces one with the same name.
func (s *Set) With(more ...Tool) *Set {
	members := maps.Clone(s.tools)
	maps.Copy(members, NewSet(more...).tools)
	return newSet(members)
}

func newSet(members map[string]*member) *Set {
	s := &Set{tools: members, specs: make([]Spec, 0, len(members))}
	for _, m := range members {
		s.specs = append(s.specs, m.spec)
	}
	slices.SortFunc(s.specs, func(a, b Spec) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// Granted returns the set of the tools that an agent with these permissions may use, including tools that need
// none.
func (s *Set) Granted(perms []Permission) *Set {
	members := maps.Clone(s.tools)
	maps.DeleteFunc(members, func(_ string, m *member) bool {
		return m.spec.Permission != "" && !slices.Contains(perms, m.spec.Permission)
	})
	return newSet(members)
}

// Within returns the set of those tools in this set that the other set also contains.
func (s *Set) Within(other *Set) *Set {
	members := maps.Clone(s.tools)
	maps.DeleteFunc(members, func(name string, _ *member) bool { _, has := other.tools[name]; return !has })
	return newSet(members)
}

// Without returns the set without the tools with these names. It returns the same set again for the same names.
func (s *Set) Without(names ...string) *Set {
	key := strings.Join(names, "\x00")
	if made, ok := s.withoutCache.Load(key); ok {
		return made.(*Set) //nolint:forcetypeassert // nothing else is stored
	}
	members := maps.Clone(s.tools)
	for _, name := range names {
		delete(members, name)
	}
	made, _ := s.withoutCache.LoadOrStore(key, newSet(members))
	return made.(*Set) //nolint:forcetypeassert // nothing else is stored
}

// Lookup returns the tool with that name; false if the set has none.
func (s *Set) Lookup(name string) (Tool, bool) {
	m, ok := s.tools[name]
	if !ok {
		return nil, false
	}
	return m.tool, true
}

// Quotes reports whether the set has a tool with that name whose results contain only text by others; see Spec.Quotes.
// A nil set has no tools.
func (s *Set) Quotes(name string) bool {
	if s == nil {
		return false
	}
	m, ok := s.tools[name]
	return ok && m.spec.Quotes
}

// Specs returns the specs of all tools, sorted by name. The caller must not change the list,
// because all current requests to models share it.
func (s *Set) Specs() []Spec { return slices.Clip(s.specs) }

// Check turns a call's arguments, as the model wrote them, into one JSON object that matches the tool's schema. It
// repairs mistakes whose meaning is beyond doubt, and the note lists these repairs; it never completes or guesses
// anything. The error says what the model should write instead: its code is NotFound, InvalidArgs, or
// ExecutionFailed for a tool whose own schema is not valid.
func (s *Set) Check(call Call) (args json.RawMessage, note string, err *Error) {
	m, ok := s.tools[call.Name]
	if !ok {
		return nil, "", s.unknownTool(call.Name)
	}
	schema, bad := m.schema()
	if bad != nil {
		return nil, "", Errorf(ExecutionFailed, "the tool %s cannot be used, its schema is not valid: %v", call.Name, bad)
	}
	return schema.check(call.Args)
}

// unknownTool returns the error for a call of a tool that the set doesn't have.
func (s *Set) unknownTool(name string) *Error {
	if len(s.specs) == 0 {
		return Errorf(NotFound, "there are no tools: answer without")
	}
	names := make([]string, len(s.specs))
	for i, spec := range s.specs {
		names[i] = spec.Name
	}
	hint := ""
	if near := nearestName(name, names); near != "" {
		hint = "did you mean " + near + "? "
	}
	return Errorf(NotFound, "no tool is named %q: %sthere are %s", Clip(name, 64), hint, strings.Join(names, ", "))
}
