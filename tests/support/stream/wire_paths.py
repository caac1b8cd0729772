"""Where each dialect's streamed turns are asked for on the local provider server."""

PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "google-generate": "/v1/models/m:streamGenerateContent",
    "bedrock-converse": "/model/m/converse-stream",
    "ollama": "/api/chat",
    "cohere": "/v2/chat",
    "google-interactions": "/v1/interactions",
}
