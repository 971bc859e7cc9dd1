package redisbus

import "strconv"

// A reply is the result of a script. Its methods never panic: a value of another type
// counts as empty, because somebody else may have written to Redis.
type reply struct{ v any }

func (r reply) list() []any {
	list, _ := r.v.([]any)
	return list
}

func (r reply) at(i int) reply {
	if list := r.list(); i < len(list) {
		return reply{list[i]}
	}
	return reply{}
}

func (r reply) text() string {
	s, _ := r.v.(string)
	return s
}

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
