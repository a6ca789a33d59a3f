def greet(where):
    return f"hello from {where}"
