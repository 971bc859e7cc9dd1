package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/agent/agenttest"
)

// roleVar is the environment variable that makes the test program run as another process of a benchmark: a model
// server, or a bot for comparison.
const roleVar = "PARLEY_BENCH_ROLE"

// waitingPath is the path at which the model server reports how many requests have waited at once.
const waitingPath = "/waiting"

// benchRole runs the role that the environment names until standard input ends. It returns false if the environment
// names none.
func benchRole() bool {
	role, rest, _ := strings.Cut(os.Getenv(roleVar), " ")
	switch role {
	case "":
		return false
	case "model":
		serveModel()
	case "echo":
		go echo(rest, func(text string) string { return "you said " + text }, func() {})
	case "floor":
		go floor(strings.Fields(rest))
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // the benchmark holds the other end
	return true
}

// startRole starts the test program in a role until the benchmark ends. If says is true, it returns the first line that
// the program prints.
func startRole(b *testing.B, role string, says bool) (*exec.Cmd, string) {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env, cmd.Stderr = append(os.Environ(), roleVar+"="+role), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close() // the role ends when its standard input does
		_ = cmd.Wait()
	})
	line := ""
	if says {
		if _, err := fmt.Fscanln(out, &line); err != nil {
			b.Fatal(err)
		}
	}
	return cmd, line
}

// The model waits for slowAnswer before it answers a message that begins with slowWord.
const (
	slowWord   = "slowly"
	slowAnswer = 3 * time.Second
)

// serveModel serves a model that repeats what it is told. If it is asked to use tools, it takes three rounds of tools
// first. It prints its base URL. At waitingPath it reports how many requests have waited for their answers at the same
// time, and resets the count.
func serveModel() {
	model := agenttest.New(func(r agenttest.Request) agenttest.Response {
		if strings.HasPrefix(r.Said(), slowWord) {
			return agenttest.Reply("you said " + r.Said()).After(slowAnswer)
		}
		if !strings.Contains(r.Said(), "use tools") {
			return agenttest.Reply("you said " + r.Said())
		}
		switch r.Rounds() {
		case 0:
			return agenttest.Calls(agenttest.ToolCall{Name: "list_directory", Args: `{"path":"."}`})
		case 1:
			return agenttest.Calls(agenttest.ToolCall{Name: "memory_read", Args: `{}`})
		case 2:
			return agenttest.Calls(agenttest.ToolCall{Name: "glob", Args: `{"pattern":"*.md"}`})
		}
		return agenttest.Reply("done")
	})
	model.Keep(0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var waiting, most atomic.Int64
	routes := http.NewServeMux()
	routes.HandleFunc(waitingPath, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, most.Swap(0))
	})
	routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		now := waiting.Add(1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			continue
		}
		model.ServeHTTP(w, r)
		waiting.Add(-1)
	})
	go func() { panic(http.Serve(listener, routes)) }()
	fmt.Printf("http://%s/v1\n", listener.Addr())
}

// floor runs a bot that does only the part of Parley's work that nobody can leave out, in the plainest way: it flushes
// each message to the disk, asks the model, flushes the answer and its intent to send it, sends it, and flushes that it
// was sent. Its arguments are the Bot API, the model's base URL, and the file to which it writes.
func floor(args []string) {
	file, err := os.OpenFile(args[2], os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	var at atomic.Int64
	flush := func() {
		const size = 8 << 10 // Parley writes this much, in three parts
		if _, err := file.WriteAt(make([]byte, size), at.Add(size)%(4<<20)); err != nil {
			panic(err)
		}
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			panic(err)
		}
	}
	echo(args[0], func(text string) string {
		flush()
		body, err := json.Marshal(map[string]any{"model": "bench", "stream": true, "messages": []any{map[string]string{"role": "user", "content": text}}})
		if err != nil {
			panic(err)
		}
		response, err := http.Post(args[1]+"/chat/completions", "application/json", bytes.NewReader(body))
		if err != nil {
			return "" // the benchmark is over
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		flush()
		return "you said " + text
	}, flush)
}

// echo runs a bot that stores nothing: it polls the Bot API at this address and answers each message with the result of
// answer. It calls sent after each answer.
func echo(api string, answer func(text string) string, sent func()) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512}}
	call := func(method string, params, result any) error {
		body, err := json.Marshal(params)
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, api+"/"+method, bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		err = json.NewDecoder(response.Body).Decode(result)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return err
	}
	type update struct {
		ID      int64 `json:"update_id"`
		Message struct {
			Text string `json:"text"`
			Chat struct {
				ID int64 `json:"id"`
			} `json:"chat"`
		} `json:"message"`
	}
	for next := int64(0); ; {
		var got struct {
			Result []update `json:"result"`
		}
		if err := call("getUpdates", map[string]int64{"offset": next, "timeout": 30}, &got); err != nil {
			return // the benchmark is over
		}
		for _, u := range got.Result {
			next = u.ID + 1
			go func() {
				var message any
				_ = call("sendMessage", map[string]any{"chat_id": u.Message.Chat.ID, "text": answer(u.Message.Text)}, &message)
				sent()
			}()
		}
	}
}
