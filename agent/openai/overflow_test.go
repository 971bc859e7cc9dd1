package openai_test

import (
	"fmt"
	"net/http"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
)

func TestOverflowMessages(t *testing.T) {
	said := func(text string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, text)
	}
	cases := map[string]struct {
		status int
		body   string
		window int
	}{
		"OpenAI":                   {400, said("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."), 8192},
		"Anthropic":                {400, said("prompt is too long: 201130 tokens > 200000 maximum"), 200000},
		"Gemini":                   {400, said("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)."), 1048575},
		"xAI":                      {400, said("This model's maximum prompt length is 131072 but the request contains 537812 tokens."), 131072},
		"Groq":                     {400, said("Please reduce the length of the messages or completion."), 0},
		"Mistral":                  {400, `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}`, 32768},
		"Together":                 {400, said("The input (140000 tokens) is longer than the model's context length (131072 tokens)."), 131072},
		"llama.cpp":                {400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}`, 4096},
		"TGI":                      {422, `{"error":"Input validation error: ` + "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 17 `inputs` tokens and 10000 `max_new_tokens`" + `","error_type":"validation"}`, 4096},
		"TGI, the prompt":          {422, `{"error":"Input validation error: ` + "`inputs` must have less than 1024 tokens. Given: 2000" + `","error_type":"validation"}`, 1024},
		"Moonshot":                 {400, said("Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)"), 262144},
		"DashScope":                {400, `{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]","type":"invalid_request_error"}}`, 129024},
		"Z.ai":                     {400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, 0},
		"LM Studio":                {400, `{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, 4096},
		"LM Studio, old":           {400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length."}`, 0},
		"Cohere":                   {400, `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt."}`, 4081},
		"Ollama cloud":             {400, `{"StatusCode":400,"Status":"400 Bad Request","error":"prompt too long; exceeded max context length by 4 tokens"}`, 0},
		"OpenRouter":               {400, `{"error":{"message":"Token limit reached","code":400}}`, 0},
		"vLLM":                     {400, `{"error":{"message":"The decoder prompt (length 8357) is longer than the maximum model length of 8192. Make sure that ` + "`max_model_len`" + ` is no smaller than the number of text tokens.","type":"BadRequestError","param":null,"code":400}}`, 8192},
		"vLLM, Xinference":         {500, `{"detail":"[address=0.0.0.0:43769, pid=1065] The decoder prompt (length 66501) is longer than the maximum model length of 65536."}`, 65536},
		"Volcengine":               {400, `{"error":{"code":"OutofContextError","message":"Total tokens of image and text exceed max message tokens. Request id: 0217","param":"","type":"BadRequest"}}`, 0},
		"Volcengine, by a gateway": {400, said("InvalidParameter: Total tokens of image and text exceed max message tokens"), 0},
		"DeepInfra":                {400, `{"error":{"message":"Requested input length 39818 exceeds maximum input length 32767"}}`, 32767},
		"Vertex":                   {400, `[{"error":{"code":400,"message":"Unable to submit request because the input token count is 131335 but model only supports up to 131072. Reduce the input token count and try again.","status":"INVALID_ARGUMENT"}}]`, 131072},
		"watsonx":                  {400, `{"errors":[{"code":"invalid_input_argument","message":"Invalid input argument for Model 'x': the number of input tokens 4098 cannot exceed the total tokens limit 4096 for this model","more_info":"https://example.com"}],"trace":"f8","status_code":400}`, 4096},
		"watsonx, by code":         {400, `{"errors":[{"code":"token_quantity_exceeded","message":"input token count is above the limit"}],"status_code":400}`, 0},
		"Snowflake":                {400, `{"message":"max tokens of 200000 exceeded","request_id":"a"}`, 200000},
		"TabbyAPI":                 {400, `{"detail":"Prompt length 5000 is greater than max_seq_len 4096"}`, 4096},
		"DS4":                      {400, said("Prompt has 150,000 tokens, but the configured context size is 128,000 tokens"), 128000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Fail(tc.status, tc.body))))
			_, err := askOnce(t, m, helloRequest())
			if e := wantFault(t, err); e.Fault != llm.Overflow || e.Window != tc.window {
				t.Errorf("fault %s, window %d; want an overflow of %d", e.Fault, e.Window, tc.window)
			}
			if got := m.Info().ContextTokens; got != tc.window {
				t.Errorf("remembers a window of %d, want %d", got, tc.window)
			}
			stream := scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Stream(tc.body))))
			_, err = askOnce(t, stream, helloRequest())
			if e := wantFault(t, err); e.Fault != llm.Overflow {
				t.Errorf("in a stream: %v", err)
			}
		})
	}
	for _, no := range []struct {
		status int
		text   string
	}{
		{http.StatusTooManyRequests, "Rate limit reached: too many tokens: 30000 per minute"},
		{http.StatusBadRequest, "Daily token limit reached"},
		{http.StatusBadRequest, "max_tokens must be at least 1"},
		{http.StatusPaymentRequired, "This request's prompt is too long for your credits"},
	} {
		_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Fail(no.status, said(no.text))))), helloRequest())
		if e := wantFault(t, err); e.Fault == llm.Overflow {
			t.Errorf("%d %s: %v", no.status, no.text, err)
		}
	}
}
