"""The simulated gateway: an asyncio server that scripts bytes, always its own process.

It plays what gateways promise and how they break, and keeps a log of what it really did. It shares
nothing with the reading side but the gateway profiles: a second opinion must not copy the first.
"""
