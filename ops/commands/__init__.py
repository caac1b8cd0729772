"""The commands of `toolonce`, a module each, by what people want with them."""
