print("important")
