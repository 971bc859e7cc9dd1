package bench

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"parley/bus"
	"parley/bus/redisbus"
)

const topic = "bench"

// raw is a plain Redis stream with a consumer group.
type raw struct{ client *redis.Client }

func openRaw(url string) (system, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	o.PoolSize = 64
	c := redis.NewClient(o)
	return &raw{c}, c.XGroupCreateMkStream(context.Background(), topic, topic, "0").Err()
}

func (r *raw) publish(ctx context.Context, i, _ int) error {
	return r.client.XAdd(ctx, &redis.XAddArgs{Stream: topic, Values: []any{"b", body(i)}}).Err()
}

func (r *raw) consume(ctx context.Context, handle func([]byte)) {
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			read := &redis.XReadGroupArgs{
				Group: topic, Consumer: strconv.Itoa(w), Streams: []string{topic, ">"}, Count: 1, Block: 100 * time.Millisecond,
			}
			for ctx.Err() == nil {
				got, err := r.client.XReadGroup(ctx, read).Result()
				if err != nil {
					continue
				}
				for _, m := range got[0].Messages {
					handle([]byte(m.Values["b"].(string)))
					if err := r.client.XAck(context.WithoutCancel(ctx), topic, topic, m.ID).Err(); err != nil {
						panic(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

func (r *raw) close() error { return r.client.Close() }

// parley is the bus of this module.
type parley struct{ bus *redisbus.Bus }

func openParley(url string) (system, error) {
	b, err := redisbus.Open(context.Background(), redisbus.Config{URL: url, Prefix: topic})
	return &parley{b}, err
}

func (p *parley) publish(ctx context.Context, i, s int) error {
	return p.bus.Publish(ctx, bus.InboundTopic, bus.Message{
		ID: "telegram:bench:" + strconv.Itoa(i), Key: "main:telegram:" + strconv.Itoa(s), Body: body(i),
	})
}

func (p *parley) consume(ctx context.Context, handle func([]byte)) {
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				l, err := p.bus.Claim(ctx, bus.InboundTopic)
				if err != nil {
					return
				}
				mail, err := l.Mail(ctx, 0)
				if err != nil {
					return
				}
				for _, m := range mail {
					handle(m.Body)
				}
				if err := l.Settle(context.WithoutCancel(ctx), bus.End{Done: mail[len(mail)-1].Seq}); err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
}

func (p *parley) close() error { return p.bus.Close() }

// milled is watermill over Redis streams.
type milled struct {
	client *redis.Client
	pub    *redisstream.Publisher
	sub    *redisstream.Subscriber
}

func openWatermill(url string) (system, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	o.PoolSize = 64
	m := &milled{client: redis.NewClient(o)}
	logger := watermill.NopLogger{}
	m.pub, err = redisstream.NewPublisher(redisstream.PublisherConfig{Client: m.client}, logger)
	if err != nil {
		return nil, err
	}
	m.sub, err = redisstream.NewSubscriber(redisstream.SubscriberConfig{Client: m.client, ConsumerGroup: topic, OldestId: "0"}, logger)
	return m, err
}

func (m *milled) publish(_ context.Context, i, _ int) error {
	return m.pub.Publish(topic, message.NewMessage(watermill.NewShortUUID(), body(i)))
}

// consume uses one subscription per worker. Each waits for its acknowledgement before it reads on.
func (m *milled) consume(ctx context.Context, handle func([]byte)) {
	var wg sync.WaitGroup
	for range workers {
		messages, err := m.sub.Subscribe(ctx, topic)
		if err != nil {
			panic(err)
		}
		wg.Go(func() {
			for x := range messages {
				handle(x.Payload)
				x.Ack()
			}
		})
	}
	wg.Wait()
}

// close closes the subscriber, whose client is also the publisher's.
func (m *milled) close() error { return m.sub.Close() }

// queued is asynq with its defaults.
type queued struct {
	redis  asynq.RedisConnOpt
	client *asynq.Client
}

func openAsynq(url string) (system, error) {
	o, err := asynq.ParseRedisURI(url)
	if err != nil {
		return nil, err
	}
	return &queued{o, asynq.NewClient(o)}, nil
}

func (q *queued) publish(ctx context.Context, i, _ int) error {
	_, err := q.client.EnqueueContext(ctx, asynq.NewTask(topic, body(i), asynq.TaskID(strconv.Itoa(i))))
	return err
}

func (q *queued) consume(ctx context.Context, handle func([]byte)) {
	s := asynq.NewServer(q.redis, asynq.Config{Concurrency: workers, LogLevel: asynq.FatalLevel, Logger: silent{}})
	err := s.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		handle(t.Payload())
		return nil
	}))
	if err != nil {
		panic(err)
	}
	<-ctx.Done()
	s.Shutdown()
}

func (q *queued) close() error { return q.client.Close() }

// silent is a logger that logs nothing.
type silent struct{}

func (silent) Debug(...any) {}
func (silent) Info(...any)  {}
func (silent) Warn(...any)  {}
func (silent) Error(...any) {}
func (silent) Fatal(...any) {}
