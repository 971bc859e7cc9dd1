package redisbus

import "strconv"

// A reply is the result of a script. Its methods never panic: a value of another type
// counts as empty, because somebody else may have written to Redis.
type reply struct{ v any }

// list returns the reply's elements, or none if it isn't a list.
func (r reply) list() []any {
	list, _ := r.v.([]any)
	return list
}

// at returns the element with that index; an empty reply if there is none.
func (r reply) at(i int) reply {
	if list := r.list(); i < len(list) {
		return reply{list[i]}
	}
	return reply{}
}

// text returns the reply as a text, or "" if it isn't one.
func (r reply) text() string {
	s, _ := r.v.(string)
	return s
}

// number returns the reply as a number, or 0 if it isn't one.
func (r reply) number() int64 {
	switch v := r.v.(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64) // a missing number is 0
		return n
	}
	return 0
}
