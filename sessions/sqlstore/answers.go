package sqlstore

import (
	"encoding/json"
	"errors"

	"parley/sessions"
	"parley/tools/plainjson"
)

// An answer is an AskEnded entry, which says how a request to people ended.
type answer struct {
	entryNumber int64
	turn, call  string
	ended       sessions.AskEnded
}

// The texts that replace the results of calls that contained an answer of an erased person.
const (
	erasedDenial = `{"error":{"code":"permission_denied","message":"Denied. By whom and why has been erased."}}`
	erasedAnswer = `{"answer":"(This answer has been erased.)"}`
)

// redactAnswers removes a person's name and words from the requests that they have
// answered in the turns of others. The decision stays, because the turn depends on it.
func (p *sessionErasure) redactAnswers(person string) error {
	answers, err := p.answers(person)
	if err != nil {
		return err
	}
	for _, a := range answers {
		kind, err := p.kindOfAsk(a)
		if err != nil {
			return err
		}
		kept := sessions.AskEnded{Ask: a.ended.Ask, State: a.ended.State}
		result := erasedAnswer
		if kind == approvalAsk {
			kept.Answer, result = a.ended.Answer, ""
			if a.ended.Answer == answerDeny {
				result = erasedDenial
			}
		}
		if err := p.rewriteAnswer(a, kept, result); err != nil {
			return err
		}
	}
	return nil
}

// The kind of ask and the answer, both of package bus, that redactAnswers treats differently from
// others.
const (
	approvalAsk = "approval"
	answerDeny  = "deny"
)

func (p *sessionErasure) answers(person string) (list []answer, err error) {
	found, err := p.tx.Query("SELECT n, turn, call, data FROM entries WHERE session = ? AND person = ? AND kind = 'ask_ended' ORDER BY n", p.id, person)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var a answer
		var data string
		if err := found.Scan(&a.entryNumber, &a.turn, &a.call, &data); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(data), &a.ended); err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, found.Err()
}

// kindOfAsk returns the kind of request that was answered; "" if that is no longer known.
func (p *sessionErasure) kindOfAsk(a answer) (kind string, err error) {
	found, err := p.tx.Query("SELECT data FROM entries WHERE session = ? AND turn = ? AND kind = 'turn_parked'", p.id, a.turn)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var data string
		var parked sessions.TurnParked
		if err := found.Scan(&data); err != nil {
			return "", err
		}
		if err := json.Unmarshal([]byte(data), &parked); err != nil {
			return "", err
		}
		for _, ask := range parked.Asks {
			if ask.ID == a.ended.Ask {
				kind = ask.Kind
			}
		}
	}
	return kind, found.Err()
}

// rewriteAnswer replaces the data of an answer's entry by kept, and the result of its call by result
// unless that is "".
func (p *sessionErasure) rewriteAnswer(a answer, kept sessions.AskEnded, result string) error {
	data, err := plainjson.Marshal(kept)
	if err != nil {
		return err
	}
	if _, err := p.tx.Exec("UPDATE entries SET person = '', data = ? WHERE session = ? AND n = ?", string(data), p.id, a.entryNumber); err != nil {
		return err
	}
	p.erased++
	if result == "" {
		return nil
	}
	var n int64
	var old string
	where := []any{p.id, a.turn, a.call}
	err = p.tx.Get("SELECT count(*), coalesce(max(data), '') FROM entries WHERE session = ? AND turn = ? AND call = ? AND kind = 'tool_result'", where, &n, &old)
	if err != nil || n == 0 {
		return err
	}
	var was sessions.ToolResult
	if err := json.Unmarshal([]byte(old), &was); err != nil {
		return err
	}
	was.Content, was.Field, was.MIME, was.Bytes = json.RawMessage(result), "", "", 0
	if data, err = plainjson.Marshal(was); err != nil {
		return err
	}
	_, err = p.tx.Exec("UPDATE entries SET data = ? WHERE session = ? AND turn = ? AND call = ? AND kind = 'tool_result'", append([]any{string(data)}, where...)...)
	return err
}
