// Command botapi serves a Telegram Bot API server to try a bot against by hand.
//
//	go run ./channels/telegram/telegramtest/botapi -listen 127.0.0.1:8081 -token 42:TEST
//	curl -d '{"chat": 1, "text": "hello"}' http://127.0.0.1:8081/_control/say
//	curl 'http://127.0.0.1:8081/_control/sent?chat=1'
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"parley/channels/telegram/telegramtest"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8081", "address to listen on")
	token := flag.String("token", "42:TEST", "the bot's token")
	username := flag.String("username", "parley_test_bot", "the bot's name")
	flag.Parse()
	if err := serve(*listen, *token, *username); err != nil {
		fmt.Fprintln(os.Stderr, "botapi:", err)
		os.Exit(1)
	}
}

func serve(listen, token, username string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := telegramtest.New(token, username)
	url, err := s.Start(listen)
	if err != nil {
		return err
	}
	fmt.Println("api_url =", url)
	<-ctx.Done()
	return s.Close()
}
